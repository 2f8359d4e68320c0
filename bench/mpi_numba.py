"""Our mpi backend beside numba-mpi in @njit loops, on one machine, in the same processes.

Both use MPI.COMM_WORLD. A loop of thousands of calls is one @njit function; loops take turns, and
results are verified after they are timed.

    pip install numba-mpi
    python bench/mpi_numba.py [-n 2 4] [--mpi openmpi mpich] [--rounds 15] [--quick]
                              [--pretend-nodes 0,1,2,3] [--bind core] [--json FILE]

numba-mpi (GPL-3.0) is measured here and nothing else: cobre_comm does not use it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
from collections.abc import Callable
from functools import partial
from importlib.metadata import version

import numpy as np
from mpi_loops import measure_loops
from mpi_options import describe, parse, parser_of, run_jobs
from mpi_sides import our_communicator
from mpi_start import MARK, library_name
from numba import njit
from tcp_timing import ratio

CASES = [
    ("barrier", "barrier", 0),
    ("allreduce 32 B", "allreduce", 32),
    ("allreduce 4 KiB", "allreduce", 4096),
    ("broadcast 32 B", "broadcast", 32),
    ("broadcast 4 KiB", "broadcast", 4096),
    ("allgather 32 B", "allgather", 32),
    ("allgather 4 KiB", "allgather", 4096),
]


@njit(nogil=True)
def our_barrier(comm, send, recv, counts, displs, calls):
    for _ in range(calls):
        comm.barrier()


@njit(nogil=True)
def our_allreduce(comm, send, recv, counts, displs, calls):
    for _ in range(calls):
        comm.allreduce(send, recv)


@njit(nogil=True)
def our_broadcast(comm, send, recv, counts, displs, calls):
    for _ in range(calls):
        comm.broadcast(recv)


@njit(nogil=True)
def our_allgather(comm, send, recv, counts, displs, calls):
    for _ in range(calls):
        comm.allgatherv(send, recv, counts, displs)


OURS = {
    "barrier": our_barrier,
    "allreduce": our_allreduce,
    "broadcast": our_broadcast,
    "allgather": our_allgather,
}


def their_loops() -> dict[str, Callable]:
    """Return the same loops with numba-mpi, whose status must stay 0."""
    import numba_mpi

    @njit(nogil=True)
    def barrier(send, recv, calls):
        status = 0
        for _ in range(calls):
            status |= numba_mpi.barrier()
        return status

    @njit(nogil=True)
    def allreduce(send, recv, calls):
        status = 0
        for _ in range(calls):
            status |= numba_mpi.allreduce(send, recv)
        return status

    @njit(nogil=True)
    def broadcast(send, recv, calls):
        status = 0
        for _ in range(calls):
            status |= numba_mpi.bcast(recv, 0)
        return status

    @njit(nogil=True)
    def allgather(send, recv, calls):
        status = 0
        for _ in range(calls):
            status |= numba_mpi.allgather(send, recv, send.size)
        return status

    return {
        "barrier": barrier,
        "allreduce": allreduce,
        "broadcast": broadcast,
        "allgather": allgather,
    }


def contribution(rank: int, count: int) -> np.ndarray:
    return np.arange(count) + 1000.0 * rank


class Buffers:
    """What one side sends and receives in a case, and a check of it."""

    def __init__(self, operation: str, nbytes: int, rank: int, size: int) -> None:
        self._operation = operation
        self._everyone = [contribution(r, nbytes // 8) for r in range(size)]
        self.send = self._everyone[rank].copy()
        self.recv = np.full(nbytes // 8 * (size if operation == "allgather" else 1), -1.0)
        if operation == "broadcast" and rank == 0:
            self.recv[:] = self.send
        self.counts = np.full(size, nbytes // 8, dtype=np.int64)
        self.displs = np.cumsum(self.counts) - self.counts

    def verify(self) -> None:
        expected = {
            "barrier": lambda: self.recv,
            "allreduce": lambda: np.sum(self._everyone, axis=0),  # of small integers: exact
            "broadcast": lambda: self._everyone[0],
            "allgather": lambda: np.concatenate(self._everyone),
        }[self._operation]()
        if not np.array_equal(self.recv, expected):
            raise AssertionError(f"{self._operation} of {self.send.nbytes} bytes: wrong result")


def rank_main(options: argparse.Namespace) -> None:
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    comm = our_communicator(options.ours, world)
    slowest = partial(world.allreduce, op=MPI.MAX)
    theirs = their_loops()
    rows = []
    for label, operation, nbytes in (case for case in CASES if options.only in case[0]):
        a, b = (Buffers(operation, nbytes, world.rank, world.size) for _ in range(2))
        loops = {
            "ours": partial(OURS[operation], comm, a.send, a.recv, a.counts, a.displs),
            "theirs": partial(theirs[operation], b.send, b.recv),
        }
        samples = measure_loops(loops, slowest, options.rounds, options.block)
        a.verify()
        b.verify()
        row = {"case": label, **ratio(samples["ours"], samples["theirs"])}
        row |= {f"{name}_us": statistics.median(taken) * 1e6 for name, taken in samples.items()}
        rows.append(row)
    comm.close()
    if world.rank == 0:
        told = {"mpi": library_name(MPI), "peer": version("numba-mpi"), "ours": options.ours}
        print(MARK + json.dumps({**told, "rows": rows}))


def show(result: dict) -> None:
    """Print a table that is also Markdown; a ratio over 1 is bold."""
    print(
        f"{describe(result)}; @njit loops; "
        f"ratio = {result['ours']} / numba-mpi {result['peer']}\n\n"
        "| | ours | numba-mpi | ratio | quartiles |\n|---|---|---|---|---|"
    )
    for row in result["rows"]:
        over = "**" if row["ratio"] > 1 else ""
        print(
            f"| {row['case']} | {row['ours_us']:.3f} | {row['theirs_us']:.3f} "
            f"| {over}{row['ratio']:.2f}{over} "
            f"| {row['ratio_low']:.2f} to {row['ratio_high']:.2f} |"
        )
    print()


def main() -> None:
    parser = parser_of(__doc__.splitlines()[0])
    options = parse(parser)
    if importlib.util.find_spec("numba_mpi") is None:
        parser.error(
            "numba-mpi is not installed: pip install numba-mpi (or --target DIR, and "
            "PYTHONPATH=DIR, to keep it out of this environment)"
        )
    if options.rank:
        rank_main(options)
    else:
        run_jobs(__file__, options, show)


if __name__ == "__main__":
    main()
