"""What leaves the house: centres, the guarantee they carry, and files that say both."""

from kveil.release.document import plain
from kveil.release.folder import load
from kveil.release.picture import save_picture, text_picture
from kveil.release.release import Release

__all__ = ["Release", "load", "plain", "save_picture", "text_picture"]
