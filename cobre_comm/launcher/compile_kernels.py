"""The process that fills numba's disk cache; see ``warm``."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Iterable
from typing import Any

from cobre_comm.launcher.warm import MESSAGE


def _kernels(backend: str) -> list[Any]:
    """Return the kernels that a communicator of that backend needs."""
    if backend == "shm":
        from cobre_kernels import access

        from cobre_comm.backends.shm import backend as shm

        return [*access.KERNELS, *shm.KERNELS.in_order()]
    if backend == "tcp":
        from cobre_kernels.tcp import farewell

        from cobre_comm.backends.tcp import backend as tcp

        return [*farewell.KERNELS, *tcp.KERNELS.in_order()]
    if backend == "mpi":
        from cobre_comm.backends.mpi import backend as mpi

        return list(mpi.kernels_to_warm())
    from cobre_comm.backends import local

    return list(local.KERNELS.in_order())


def _functions(kernels: Iterable[Any]) -> list[Any]:
    from cobre_kernels.doors import DOORS

    return [kernel.function for kernel in kernels] + [function for function, _ in DOORS.values()]


def _cache_files(functions: Iterable[Any]) -> set[pathlib.Path]:
    """Return the files that numba's cache has for these functions.

    Raises
    ------
    RuntimeError
        If numba finds no place to keep them.
    """
    from numba import njit

    found: set[pathlib.Path] = set()
    for function in functions:
        directory = pathlib.Path(njit(cache=True)(function).stats.cache_path)
        code = function.__code__
        stem = f"{pathlib.Path(code.co_filename).stem}.{function.__qualname__}-"
        found.update(path for path in directory.glob(f"{stem}*.nb[ci]"))
    return found


def _announce_first_compilation() -> None:
    """Say so when numba does not find something in its cache."""
    from numba.core import event

    class Announcer(event.Listener):  # type: ignore[misc]  # numba is untyped
        announced = False

        def on_start(self, event: Any) -> None:
            if not self.announced:
                print(MESSAGE, file=sys.stderr, flush=True)
            self.announced = True

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Announcer())


def main(backend: str, marker: str) -> None:
    """Compile, or load from the cache, what ``backend`` needs; then write the marker."""
    from cobre_kernels import exact_sum, guard
    from cobre_kernels.doors import DOORS, door

    kernels = [*_kernels(backend), *exact_sum.KERNELS, *guard.KERNELS]
    functions = _functions(kernels)
    try:
        _cache_files(functions)
    except RuntimeError:
        return  # no cache: every rank compiles for itself, whatever is done here
    _announce_first_compilation()
    for kernel in kernels:
        kernel.call, kernel.address  # noqa: B018  # either compiles
    for name in DOORS:
        door(name)
    _write(pathlib.Path(marker), _cache_files(functions))


def _write(marker: pathlib.Path, files: Iterable[pathlib.Path]) -> None:
    draft = marker.with_name(f"{marker.name}.{os.getpid()}")
    try:
        draft.write_text("".join(f"{path}\n" for path in sorted(files)))
        draft.replace(marker)
    except OSError:
        pass  # the next job asks numba again
