"""The tests of this room share modules that lie beside them: `replaying`, `neighbours`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
