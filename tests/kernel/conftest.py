"""The tests of the vault share two modules that lie beside them: `vault_laws` and `vault_sources`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
