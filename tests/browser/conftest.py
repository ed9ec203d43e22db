"""Modules beside the tests: changes of manifests, the driver of Chromium, the service in a process, small campaigns."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "service"), str(HERE.parent / "collect")]
