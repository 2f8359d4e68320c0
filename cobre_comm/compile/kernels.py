"""The process that fills numba's disk cache; see ``warm``."""

from __future__ import annotations

import functools
import multiprocessing
import os
import pathlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cobre_comm.compile.warm import MESSAGE
from cobre_comm.cores import usable_cores


def _kernels(backend: str) -> list[Any]:
    """Return the kernels that a communicator of that backend needs."""
    if backend == "shm":
        from cobre_kernels import access

        from cobre_comm.backends.shm import backend as shm

        return [*shm.KERNELS.all(), *access.KERNELS]
    if backend == "tcp":
        from cobre_kernels.tcp import farewell

        from cobre_comm.backends.tcp import backend as tcp

        return [*tcp.KERNELS.all(), *farewell.KERNELS]
    if backend == "mpi":
        from cobre_comm.backends.mpi import backend as mpi

        return list(mpi.kernels_to_warm())
    from cobre_comm.backends import local

    return list(local.KERNELS.all())


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


def _announce_first_compilation(announced: Any) -> None:
    """Say so when numba does not find something in its cache; once for all processes."""
    from numba.core import event

    class Announcer(event.Listener):  # type: ignore[misc]  # numba is untyped
        def on_start(self, event: Any) -> None:
            with announced.get_lock():
                if not announced.value:
                    print(MESSAGE, file=sys.stderr, flush=True)
                announced.value = 1

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Announcer())


def _compile(todo: Sequence[Callable[[], object]]) -> None:
    """Bring everything into the cache, with as many processes as there are cores.

    They share nothing but the folder: each function has files of its own. They are forked, so that
    none imports numba again; where that is unsafe (macOS) this process does it all. The first goes
    before the fork: what it is made of, most others are made of too.
    """
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    _announce_first_compilation(context.Value("b", 0))
    workers = min(usable_cores(), len(todo)) if sys.platform == "linux" else 1
    taken = context.Value("i", 1)
    todo[0]()
    others = [context.Process(target=_take_turns, args=(todo, taken)) for _ in range(workers - 1)]
    for process in others:
        process.start()
    _take_turns(todo, taken)
    for process in others:
        process.join()


def _take_turns(todo: Sequence[Callable[[], object]], taken: Any) -> None:
    while True:
        with taken.get_lock():
            number = taken.value
            taken.value += 1
        if number >= len(todo):
            return
        todo[number]()


def main(markers: Mapping[str, str]) -> None:
    """Compile, or find in the cache, what these backends need; then write each one's marker."""
    from cobre_kernels import exact_sum, fold, guard
    from cobre_kernels.doors import DOORS, door

    common = [*fold.KERNELS, *exact_sum.KERNELS, *guard.KERNELS]
    kernels = {backend: [*_kernels(backend), *common] for backend in markers}
    try:
        _cache_files(_functions(common))
    except RuntimeError:
        return  # no cache: every rank compiles for itself, whatever is done here
    different = {kernel.function: kernel for some in kernels.values() for kernel in some}
    addresses = [functools.partial(getattr, k, "address") for k in different.values()]
    _compile([*addresses, *(functools.partial(door, name) for name in DOORS)])
    for backend, marker in markers.items():
        _write(pathlib.Path(marker), _cache_files(_functions(kernels[backend])))


def _write(marker: pathlib.Path, files: Iterable[pathlib.Path]) -> None:
    draft = marker.with_name(f"{marker.name}.{os.getpid()}")
    try:
        draft.write_text("".join(f"{path}\n" for path in sorted(files)))
        draft.replace(marker)
    except OSError:
        pass  # the next job asks numba again
