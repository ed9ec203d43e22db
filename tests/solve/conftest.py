"""The tests of seeding share a module that lies beside them: `seeding_laws`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
