"""Random cases with every oddity with which the SDDP example must cope: `make wild`.

The modules of the example are imported by path, as its scripts import them.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "sddp"
if str(EXAMPLE) not in sys.path:
    sys.path.insert(0, str(EXAMPLE))
