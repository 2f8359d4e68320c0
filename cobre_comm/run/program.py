"""The program of the ranks: a script or a module, checked before a rank is started."""

from __future__ import annotations

import importlib.machinery
import pathlib
import sys
from collections.abc import Sequence


def program_of(module: Sequence[str] | None, script: Sequence[str]) -> list[str]:
    """Return the arguments of the interpreter; ``ValueError`` without such a script or module."""
    if module is not None:
        if not module:
            raise ValueError("-m needs the name of a module")
        _check_module(module[0])
        return ["-m", *module]
    words = list(script[1:] if script[:1] == ["--"] else script)
    if not words:
        raise ValueError("a script is missing: give a file, or -m and a module")
    _check_script(words[0])
    return words


def _check_script(name: str) -> None:
    path = pathlib.Path(name)
    if path.is_dir():
        raise ValueError(f"{name!r} is a directory, not a script")
    try:
        path.open("rb").close()
    except OSError as error:
        raise ValueError(f"cannot open script {name!r}: {error.strerror}") from None


def _check_module(name: str) -> None:
    """Look for the top package only: a deeper look would run its code."""
    top = name.partition(".")[0]
    folders = sys.path if sys.flags.safe_path else [str(pathlib.Path.cwd()), *sys.path]
    known = top in sys.builtin_module_names or importlib.machinery.FrozenImporter.find_spec(top)
    if not known and importlib.machinery.PathFinder.find_spec(top, folders) is None:
        raise ValueError(f"there is no module {name!r}")
