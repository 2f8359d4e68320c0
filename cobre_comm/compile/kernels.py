"""The process that fills numba's disk cache; ``warm`` starts it."""

from __future__ import annotations

import functools
import importlib
import multiprocessing
import os
import pathlib
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cobre_kernels.machine.compiling.cache_folder import kernel_folder

from cobre_comm.backends import SPECS
from cobre_comm.common.cores import usable_cores
from cobre_comm.compile.warm import BETWEEN_NODES, RARE

VERSIONS_KEPT = 8  # several clones and environments of one user


def _functions(kernels: Iterable[Any]) -> list[Any]:
    from cobre_kernels.collective.from_python.fast_path import FAST_PATHS

    fast_paths = [function for function, _ in FAST_PATHS.values()]
    return [kernel.function for kernel in kernels] + fast_paths


def _cache_files(functions: Iterable[Any]) -> set[pathlib.Path]:
    """Return the files that numba's cache has for these functions.

    Raises
    ------
    RuntimeError
        If numba finds no place to keep them.
    """
    from cobre_kernels.machine.compiling.disk_cache import cache_of

    found: set[pathlib.Path] = set()
    for function in functions:
        cache = cache_of(function)
        found.update(pathlib.Path(cache.cache_path).glob(f"{cache._impl.filename_base}.*nb[ci]"))
    return found


def _compile(todo: Sequence[Callable[[], object]]) -> None:
    """Bring everything into the cache, with as many processes as there are cores.

    The processes share only the folder, in which each function has files of its own. They are
    forked, so that none imports numba again; where that is unsafe (macOS), this process compiles
    everything. The first kernel is compiled before the fork, because most others use its routines.
    """
    from cobre_kernels.machine.compiling.progress import progress

    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    workers = min(usable_cores(), len(todo)) if sys.platform == "linux" else 1
    announced, left = context.Value("b", 0), context.Array("i", [1, len(todo)])
    with progress(announced, announced.get_lock()) as line:
        todo[0]()
        line.stop_clock()  # a fork copies one thread only
        others = [
            context.Process(target=_take_turns, args=(todo, left, number % 2 == 1))
            for number in range(1, workers)
        ]
        for process in others:
            process.start()
        line.start_clock()
        _take_turns(todo, left, False)
        for process in others:
            process.join()


def _take_turns(todo: Sequence[Callable[[], object]], left: Any, from_end: bool) -> None:
    """Compile one function after another, from the beginning or the end of the remaining ones.

    Neighbours use the same routines, so that a process compiles a routine only once.
    """
    while True:
        with left.get_lock():
            begin, end = left
            if begin == end:
                return
            number = end - 1 if from_end else begin
            left[:] = (begin, end - 1) if from_end else (begin + 1, end)
        todo[number]()


def main(markers: Mapping[str, str]) -> None:
    """Compile the kernels of each name, or find them in the cache; then write its marker."""
    kernels: dict[str, Sequence[Any]]
    kernels = {spec.name: spec.kernels() for spec in SPECS if spec.name in markers}
    for spec in SPECS:
        if (name := spec.name + BETWEEN_NODES) in markers:
            kernels[name] = spec.kernels_between_nodes()
    if RARE in markers:
        kernels[RARE] = rare_kernels()
    different = {kernel.function: kernel for some in kernels.values() for kernel in some}
    try:
        _cache_files(_functions(different.values()))
    except RuntimeError:
        return  # no cache: every rank compiles for itself
    _compile(_in_order(different.values()))
    for name, marker in markers.items():
        _write(pathlib.Path(marker), _cache_files(_functions(kernels[name])))
    _forget_old_versions(kernel_folder(os.environ))


def rare_kernels() -> list[Any]:
    """Return the kernels of all backends that are compiled on first use (``loading.py``)."""
    from cobre_kernels.collective import work
    from cobre_kernels.collective.entry import RARE_ENTRIES
    from cobre_kernels.collective.reduction import fold

    bodies = [importlib.import_module(spec.module).BODIES for spec in SPECS]
    rare = dict.fromkeys(body for each in bodies for body in each.rare())  # mpi has tcp's
    return [*RARE_ENTRIES.values(), *rare, fold.rare_fold_kernel, *work.KERNELS]


def _in_order(kernels: Iterable[Any]) -> list[Callable[[], object]]:
    """Return functions that compile the kernels and the fast paths; neighbours share routines.

    An entry comes first, then the kernels of each backend, then the common ones, the longest last.
    """
    from cobre_kernels.collective.from_python.fast_path import FAST_PATHS, fast_path
    from cobre_kernels.collective.reduction import exact_sum, fold

    from cobre_comm.backends.kernel_backend import COMMON_KERNELS

    first, *others = COMMON_KERNELS
    long = (*exact_sum.KERNELS, *fold.KERNELS)
    own = [kernel for kernel in kernels if kernel not in COMMON_KERNELS]
    short = [kernel for kernel in others if kernel not in long]
    addresses = [
        [functools.partial(getattr, kernel, "address") for kernel in some]
        for some in ([first, *own, *short], long)
    ]
    fast_paths = [functools.partial(fast_path, name) for name in FAST_PATHS]
    return [*addresses[0], *fast_paths, *addresses[1]]


def _write(marker: pathlib.Path, files: Iterable[pathlib.Path]) -> None:
    draft = marker.with_name(f"{marker.name}.{os.getpid()}")
    try:
        with draft.open("x") as file:  # follows no link
            file.write("".join(f"{path}\n" for path in sorted(files)))
        draft.replace(marker)
    except OSError:
        pass  # the next job asks numba again


def _forget_old_versions(folder: pathlib.Path | None) -> None:
    """Delete the kernels of older versions, except for the latest few."""
    if folder is None:
        return
    found = [path for path in folder.parent.glob("kernels-*") if path != folder]
    found.sort(key=lambda path: path.stat().st_mtime)
    for path in found[: -VERSIONS_KEPT + 1]:
        shutil.rmtree(path, ignore_errors=True)
