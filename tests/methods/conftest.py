"""The tests of methods share a module that lies beside them: `universe_laws`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
