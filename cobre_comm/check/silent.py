"""Run the SDDP example without what it shows, where rich is not installed: a module for ``-m``.

``python -m cobre_comm.check.silent FOLDER/train.py arguments``
"""

from __future__ import annotations

import runpy
import sys
import types
from pathlib import Path


class Display:
    """Stands for the example's, and shows nothing."""

    def __init__(self, active: bool, limit: int | None) -> None:
        pass

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def announce(self, *_: object) -> None:
        """Say nothing of the case."""

    def watch(self, *_: object) -> None:
        """Say nothing of an iteration."""

    def summarise(self, *_: object) -> None:
        """Say nothing of the result."""


def main() -> None:
    """Run the script that the first argument names, with the others."""
    stand_in = types.ModuleType("display")
    stand_in.Display = Display  # type: ignore[attr-defined]
    sys.modules["display"] = stand_in
    del sys.argv[0]
    script = Path(sys.argv[0])
    sys.path.insert(0, str(script.parent))
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    main()
