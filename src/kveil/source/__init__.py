"""How rows come in: arrays, frames, files and clusters, as integer summaries and nothing else."""

from kveil.progress import listen, step
from kveil.source.base import Source
from kveil.source.dispatch import read
from kveil.source.inspection import inspect
from kveil.source.threads import n_threads

__all__ = ["Source", "inspect", "listen", "n_threads", "read", "step"]
