"""Beside the tests of this room lie tools that they share. Flower is not installed everywhere: `make test-all` has it."""

import sys
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

collect_ignore = [] if find_spec("flwr") else ["test_flower.py"]
