"""The tests of this room share a module that lies beside them, `neighbours`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
