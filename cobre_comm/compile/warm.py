"""Compile the kernels once before ranks start, so that R ranks need not each do it.

A marker file stands for these sources, this interpreter and this CPU, and lists the files of
numba's cache. As long as the files are there, the launcher need not even import numba.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import pathlib
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping

from cobre_kernels.machine.compiling.cache_folder import (
    COMPILED_BY,
    cache_folder,
    kernel_folder,
    version_key,
)
from cobre_kernels.machine.compiling.hashing import hash_of

from cobre_comm.backends import BY_NAME
from cobre_comm.compile.lock import one_compiles_first
from cobre_comm.processes.interpreter import interpreter_command, tied_command

BETWEEN_NODES = "-nodes"  # after a backend's name: what ranks of several nodes need besides
RARE = "rare-kernels"  # of all backends: kernels that are compiled on first use
_CPU_BYTES = 4096  # the first processor of /proc/cpuinfo, features included


def kernel_sets(
    backends: Iterable[str], environ: Mapping[str, str], machines: int = 1
) -> list[str]:
    """Return which kernels jobs need, as names for :func:`warm_up`.

    Ranks of one machine need those of shared memory alone, unless a variable parts them.
    """
    names = []
    for name in backends:
        spec = BY_NAME[name]
        names.append(name)
        if spec.parting_variables and (machines > 1 or spec.may_part(environ)):
            names.append(name + BETWEEN_NODES)
    return names


def warm_up(names: Iterable[str], environ: Mapping[str, str]) -> list[str]:
    """Make sure that kernels are in numba's disk cache, if there can be one.

    A failure to fill the cache is not an error: ranks then compile for themselves.

    Parameters
    ----------
    names : iterable of str
        As :func:`kernel_sets` tells them, also :data:`RARE`. Kernels that several have in common
        are compiled once.
    environ : mapping
        The environment of the process that compiles; variables of numba say what it makes, and
        where.

    Returns
    -------
    list of str
        The names whose kernels are not in a cache now.
    """
    if environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return list(names)
    try:
        folder = _directory(environ)
    except OSError:
        return list(names)
    fingerprint = _fingerprint(environ, folder)
    markers = {name: folder / f"warm-{name}-{fingerprint}" for name in names}
    if not _cold(markers):
        return []
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    with one_compiles_first(f"warm-{fingerprint}", environ):
        if cold := _cold(markers):  # or another launcher has done it meanwhile
            _compile({name: markers[name] for name in cold}, environ)
    return _cold(markers)


def _directory(environ: Mapping[str, str]) -> pathlib.Path:
    """Return the folder of the markers: beside the kernels, or else beside the locks."""
    return pathlib.Path(kernel_folder(environ) or cache_folder(environ))


def _fingerprint(environ: Mapping[str, str], folder: pathlib.Path) -> str:
    """Return a hash of all that decides which code is compiled, and where it is kept."""
    parts = [version_key(environ), _cpu(), _what_is_compiled()]
    if kernel_folder(environ) is None:  # numba goes by names and dates of files
        sources = pathlib.Path(_origin("cobre_kernels")).parent.rglob("*.py")
        parts += [_stamp(path) for path in sorted(sources)]
        parts += [_stamp(_origin(name)) for name in COMPILED_BY]
        parts.append(str(folder))
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:24]


def _what_is_compiled() -> str:
    """Return a hash of the sources that say which kernels a backend has."""
    package = pathlib.Path(__file__).parents[1]
    folders = (package / "backends", package / "compile")
    sources = [path for folder in folders for path in folder.rglob("*.py")]
    found: str = hash_of([*sources, package / "loading.py"])
    return found


def _origin(package: str) -> str:
    """Return the file of a package, without importing it."""
    spec = importlib.util.find_spec(package)
    return (spec and spec.origin) or package


def _stamp(path: str | pathlib.Path) -> str:
    """Return time and size of a source file, which numba, too, takes for its version."""
    try:
        status = pathlib.Path(path).stat()
    except OSError:
        return f"{path}: none"
    return f"{path}: {status.st_mtime_ns} {status.st_size}"


def _cpu() -> str:
    try:
        with pathlib.Path("/proc/cpuinfo").open("rb") as file:
            lines = file.read(_CPU_BYTES).split(b"\n\n")[0].splitlines()
    except OSError:
        return platform.processor()
    kept = (b"model name", b"flags", b"Features", b"CPU")
    return b"\n".join(line for line in lines if line.startswith(kept)).decode(errors="replace")


def _cold(markers: Mapping[str, pathlib.Path]) -> list[str]:
    return [name for name, marker in markers.items() if not _is_warm(marker)]


def _is_warm(marker: pathlib.Path) -> bool:
    try:
        files = marker.read_text().splitlines()
    except OSError:
        return False
    return bool(files) and all(os.path.exists(name) for name in files)  # noqa: PTH110  # 40 files


def _compile(markers: Mapping[str, pathlib.Path], environ: Mapping[str, str]) -> None:
    """Compile in a process of its own: the launcher stays small, and never imports numba."""
    files = {name: str(marker) for name, marker in markers.items()}
    program = (
        f"import sys; sys.path[:] = {sys.path!r}; "
        f"from cobre_comm.compile.kernels import main; main({files!r})"
    )
    command = [*interpreter_command(), "-P", "-c", program]
    subprocess.run(
        tied_command(command),
        env={**environ, "NUMBA_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # a Ctrl-C is for this process, which then ends the other
        check=False,
    )
