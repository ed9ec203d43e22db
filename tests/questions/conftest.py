"""The tests of questions share a module that lies beside them: `question_examples`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
