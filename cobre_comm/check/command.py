"""``cobre-comm check``: from its arguments to the exit status."""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from cobre_kernels.machine.made import prepare
from cobre_kernels.machine.places import own_folder

from cobre_comm.command_line import Parser
from cobre_comm.system.streams import write_error

if TYPE_CHECKING:
    from cobre_comm.check.result import Check, Point, Result

PROG = "cobre-comm check"
# Variables with which the checks would test nothing, or something else.
UNWANTED = {
    "PYTHONOPTIMIZE": "asserts are off, so nothing would be checked",
    "NUMBA_DISABLE_JIT": "nothing would be compiled, and that is half of what is checked",
}


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        "check",
        "Prove that this machine computes what is promised: the collectives, shared regions and "
        "errors of every backend, and the same bits of the SDDP example on all.",
        """
        cobre-comm check                           # all backends on 1, 2 and 4 ranks, some minutes
        cobre-comm check --quick --backends shm    # one backend on 2 ranks, half a minute
        cobre-comm check --json > machine.json     # for a report
        """,
        "0 all right, 1 something is not, 2 wrong arguments, 130 interrupted",
    )
    add = parser.add_argument
    add(
        "-n",
        dest="sizes",
        metavar="N,N,...",
        help="numbers of ranks (default: 1,2,4; with --quick 2); local is always one",
    )
    add(
        "--backends",
        metavar="NAME,...",
        help="local, shm, tcp, mpi, mpi-openmpi, mpi-mpich, mpi-impi, or another distribution's "
        "(default: all that can run here)",
    )
    add("--quick", action="store_true", help="fewer checks: half a minute instead of some minutes")
    add("--json", action="store_true", help="print one JSON document, and no table")
    return parser  # fmt: skip


def main(words: Sequence[str]) -> int:
    """Run the command; return the exit status."""
    parser = _parser()
    chosen = parser.parse_args(words)
    try:
        sizes, names = _sizes(chosen.sizes, quick=chosen.quick), _names(chosen.backends)
        _check_surroundings()
    except ValueError as error:
        parser.error(str(error))
    from cobre_comm.check.backends import UnknownBackend

    try:
        with _ended_by_sigterm():
            _let_numba_keep_code()
            return _check(sizes, names, quick=chosen.quick, as_table=not chosen.json)
    except UnknownBackend as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        write_error(f"{PROG}: interrupted")
        return 130


def _sizes(text: str | None, *, quick: bool) -> list[int]:
    from cobre_comm.processes.job import check_size

    if text is None:
        return [2] if quick else [1, 2, 4]
    try:
        sizes = sorted({int(word) for word in text.split(",")})
    except ValueError:
        raise ValueError(f"-n takes numbers of ranks with commas, as 1,2,4; got {text!r}") from None
    for size in sizes:
        check_size(size)
    return sizes


def _names(text: str | None) -> list[str]:
    """Return the names of backends; a number belongs to the name before it (``mpi-mpich:0,1``)."""
    names: list[str] = []
    for word in filter(None, (text or "").split(",")):
        if word.isdigit() and names:
            names[-1] += f",{word}"
        else:
            names.append(word.strip().lower())
    if text is not None and not names:
        raise ValueError("--backends needs a name, as in --backends shm,tcp")
    return list(dict.fromkeys(names))


def _check_surroundings() -> None:
    if not __debug__:
        raise ValueError("asserts are off, so nothing would be checked: run Python without -O")
    for name, consequence in UNWANTED.items():
        if os.environ.get(name, "0") not in ("", "0"):
            raise ValueError(f"{name} is set: {consequence}; unset it")


def _let_numba_keep_code() -> None:
    """Set a folder for numba's cache, if numba can write neither beside this package nor at home.

    Without such a folder a function with ``cache=True`` is an error, and the checks use such
    functions.
    """
    import numba

    try:
        numba.njit(cache=True)(_let_numba_keep_code)
    except RuntimeError:
        folder = str(own_folder(os.environ, "checks"))
        os.environ["NUMBA_CACHE_DIR"] = numba.config.CACHE_DIR = folder


def _check(sizes: Sequence[int], names: Sequence[str], *, quick: bool, as_table: bool) -> int:
    """Find the backends, compile, check, and print the results."""
    from cobre_comm.check import document, machine, plan, table
    from cobre_comm.check.backends import find_backends
    from cobre_comm.check.training import Witness

    began = time.monotonic()
    backends, missing = find_backends(names)
    facts = machine.describe(backends)
    if as_table:
        print(table.of_machine(facts), flush=True)
    witness = Witness(quick=quick)
    points = plan.points(backends, sizes, quick=quick)
    planned = {point: plan.checks(point, witness, quick=quick) for point in points}
    prepare()
    results = _run(planned)
    seconds = time.monotonic() - began
    if as_table:
        print(table.of_results(results, missing))
        print(document.last_line(missing, results, seconds))
    else:
        told = document.document(facts, missing, results, quick=quick, seconds=seconds)
        print(json.dumps(told, indent=1))
    return 0 if document.is_right(missing, results) else 1


def _run(planned: Mapping[Point, Sequence[Check]]) -> list[Result]:
    from cobre_comm.check.runner import Lines, run_all

    counts = {point: len(checks) for point, checks in planned.items()}
    total = sum(counts.values())
    if not total:
        return []
    write_error(
        f"{total} checks on {len(counts)} set{'s' * (len(counts) != 1)} of ranks; "
        "the first time on a machine, numba compiles for some minutes"
    )
    return run_all(planned, Lines(counts))


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, but with an exit status that names SIGTERM."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
