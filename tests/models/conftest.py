"""The tests of models share a module that lies beside them: `refusals`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
