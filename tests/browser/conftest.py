"""`mutate` lies beside the tests, and the drivers of Node and Chromium too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
