"""The process that fills numba's disk cache; ``warm`` starts it."""

from __future__ import annotations

import functools
import multiprocessing
import os
import pathlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cobre_comm.backends import SPECS
from cobre_comm.common.cores import usable_cores
from cobre_comm.compile.warm import MESSAGE


def _functions(kernels: Iterable[Any]) -> list[Any]:
    from cobre_kernels.collective.fast_path import FAST_PATHS

    fast_paths = [function for function, _ in FAST_PATHS.values()]
    return [kernel.function for kernel in kernels] + fast_paths


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
    from cobre_kernels.collective.fast_path import FAST_PATHS, fast_path

    kernels = {spec.name: spec.kernels() for spec in SPECS if spec.name in markers}
    different = {kernel.function: kernel for some in kernels.values() for kernel in some}
    try:
        _cache_files(_functions(different.values()))
    except RuntimeError:
        return  # no cache: every rank compiles for itself
    addresses = [functools.partial(getattr, k, "address") for k in different.values()]
    _compile([*addresses, *(functools.partial(fast_path, name) for name in FAST_PATHS)])
    for backend, marker in markers.items():
        _write(pathlib.Path(marker), _cache_files(_functions(kernels[backend])))


def _write(marker: pathlib.Path, files: Iterable[pathlib.Path]) -> None:
    draft = marker.with_name(f"{marker.name}.{os.getpid()}")
    try:
        with draft.open("x") as file:  # follows no link
            file.write("".join(f"{path}\n" for path in sorted(files)))
        draft.replace(marker)
    except OSError:
        pass  # the next job asks numba again
