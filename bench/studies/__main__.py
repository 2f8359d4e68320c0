"""Run a study by `python -m bench.studies NAME`, so that ranks can unpickle its functions."""

import sys
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("*.py") if "\ndef main(" in path.read_text())

if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
    sys.exit(f"python -m bench.studies {{{','.join(NAMES)}}} [--help]")
import_module(f"bench.studies.{sys.argv.pop(1)}").main()
