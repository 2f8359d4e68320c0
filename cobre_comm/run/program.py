"""The program of the ranks: a script or a module, checked before a rank is started.

Users of ``mpiexec`` write ``python`` before the script. Ranks run in the Python of the launcher. So
``python`` is dropped if it means the launcher's Python, and refused if it means another Python.
"""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence

_OF_SHELLS = (".sh", ".bash", ".slurm", ".sbatch")
_PYTHON = re.compile(r"python(3(\.\d+)?)?")


def program_of(module: Sequence[str] | None, script: Sequence[str]) -> list[str]:
    """Return the arguments of the interpreter; ``ValueError`` if it could not run the program."""
    if module is not None:
        if not module:
            raise ValueError("-m needs the name of a module")
        check_module(module[0])
        return ["-m", *module]
    words = list(script[1:] if script[:1] == ["--"] else script)
    if words and _PYTHON.fullmatch(words[0].rpartition("/")[2]):
        _check_python(words[0])
        del words[0]
        if words[:1] == ["-m"]:
            return program_of(words[1:], [])
        if words and words[0].startswith("-"):
            return words  # the words are options of Python, as in `python -u script.py`
    if not words:
        raise ValueError("a script is missing: give a file, or -m and a module")
    _check_script(words[0])
    return words


def _check_python(name: str) -> None:
    """Raise ``ValueError`` if a name means another Python than that of this launcher."""
    path = shutil.which(name)
    if path is None:
        raise ValueError(f"there is no program {name!r}")
    ask = [path, "-c", "import sys; print(sys.version_info[:3], sys.prefix)"]
    asked = subprocess.run(ask, capture_output=True, text=True, check=False)
    if asked.stdout.rstrip("\n") != f"{sys.version_info[:3]} {sys.prefix}":
        raise ValueError(
            f"ranks run in the Python of this launcher, {sys.executable}, and {name!r} is {path}; "
            f"leave {name!r} out, or start the launcher by `{name} -m cobre_comm run`"
        )


def _check_script(name: str) -> None:
    path = pathlib.Path(name)
    if path.is_dir():
        raise ValueError(f"{name!r} is a directory, not a script")
    if path.suffix == ".ipynb":
        raise ValueError(
            f"{name!r} is a notebook; make a script of it by `jupyter nbconvert --to script "
            f"{name}`, or call cobre_comm.launch in the notebook"
        )
    try:
        with path.open("rb") as file:
            begin = file.read(4)
            if begin[:2] == b"#!" or path.suffix in _OF_SHELLS:
                _check_language(name, begin + file.read())
        if begin == b"\x7fELF":
            raise ValueError(f"{name!r} is machine code; ranks are Python programs")
    except OSError as error:
        hint = ""
        if path.with_name(path.name + ".py").is_file():
            hint = f"; did you mean {name + '.py'!r}?"
        elif name.isidentifier() and _is_found(name):
            hint = f"; a module is run by -m: -m {name}"
        raise ValueError(f"cannot open script {name!r}: {error.strerror}{hint}") from None


def _check_language(name: str, text: bytes) -> None:
    """Raise ``ValueError`` for a script of another language, which Python cannot compile."""
    first = text.partition(b"\n")[0].decode(errors="replace")
    if first[:2] == "#!" and "python" in first:
        return
    try:
        compile(text, name, "exec", dont_inherit=True)  # pip's scripts for /bin/sh are Python too
    except (SyntaxError, ValueError):
        written = f" for {first[2:].strip()}" if first[:2] == "#!" else ""
        raise ValueError(
            f"{name!r} is a script{written}, not of Python; ranks are Python programs, "
            "so let the shell script call `cobre-comm run`, with the script of Python that it runs"
        ) from None


def check_module(name: str) -> None:
    """Raise ``ValueError`` if the top package of a module is not found.

    The module itself is not looked for, because that would run code of the package.
    """
    top = name.partition(".")[0]
    if not _is_found(top):
        hint = "; --as-mpi4py lends ours that name" if top == "mpi4py" else ""
        raise ValueError(f"there is no module {name!r}{hint}")


def _is_found(top: str) -> bool:
    """Whether ``python -m`` finds a top package: in the current folder, or by any finder of Python.

    A package that is installed in editable mode may have a finder of its own.
    """
    before = sys.path[:]
    if not sys.flags.safe_path:
        sys.path.insert(0, "")
    try:
        return any(finder.find_spec(top, None) is not None for finder in sys.meta_path)
    finally:
        sys.path[:] = before
