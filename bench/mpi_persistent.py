"""Persistent collectives of MPI 4 beside the blocking ones: should a kernel use them?

The same buffers, blocks of calls in turn, on COMM_WORLD; every call is made from @njit code by the
function's name, as a kernel would, so that mpi4py's own cost is not in the numbers. For a sum, an
allgather of the same bytes is measured too: folded in rank order it is what the mpi backend does.
Results are verified after they are timed.

    python bench/mpi_persistent.py [-n 2 4] [--mpi openmpi mpich] [--rounds 15] [--quick]
                                   [--bind core] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
from functools import partial

import numpy as np
from mpi_loops import measure_loops
from mpi_options import describe, parse, parser_of, run_jobs
from mpi_start import MARK, library_name
from tcp_timing import ratio

CASES = [
    ("barrier", "barrier", 0),
    *((f"allreduce {label}", "sum", n) for label, n in (("8 B", 8), ("32 B", 32), ("4 KiB", 4096))),
    ("allreduce 32 KiB", "sum", 32768),
    ("allreduce 512 KiB", "sum", 524_288),
    ("allreduce 8 MiB", "sum", 8 * 2**20),
    ("allgather 32 B", "allgather", 32),
    ("allgather 4 KiB", "allgather", 4096),
    ("allgather 200 kB", "allgather", 200_000),
    ("allgather 12.9 MB", "allgather", 12_900_000),
    ("broadcast 32 B", "broadcast", 32),
    ("broadcast 10 kB", "broadcast", 10_000),
    ("broadcast 8 MiB", "broadcast", 8 * 2**20),
]


def contribution(rank: int, count: int) -> np.ndarray:
    return (np.arange(count) % 1000 + 1.0) * (rank + 1)


class Way:
    """One way to make one collective: a loop of so many calls, and a check of what it leaves.

    Parameters
    ----------
    mpi, world
        mpi4py's module, and the communicator.
    operation : str
        "barrier", "sum", "allgather" or "broadcast".
    nbytes : int
        Of each rank.
    persistent : bool
        Made once and started for each call, or called each time.
    """

    def __init__(self, mpi, world, operation: str, nbytes: int, persistent: bool) -> None:
        from mpi_symbols import LOOPS, STATUS_BYTES, loop_persistent, words_of

        self._rank, self._size, self._operation = world.rank, world.size, operation
        root_only = operation == "broadcast" and world.rank != 0
        self._send = np.zeros(nbytes // 8) if root_only else contribution(world.rank, nbytes // 8)
        gathered = world.size if operation == "allgather" else 1
        self._recv = np.full(nbytes // 8 * gathered, -1.0)
        self._request = self._init(world) if persistent else None
        if persistent:
            status = self._status = np.zeros(STATUS_BYTES, np.uint8)
            self.loop = partial(loop_persistent, mpi._addressof(self._request), status.ctypes.data)
        else:
            words = words_of(mpi, world, operation, self._send, self._recv)
            self.loop = partial(LOOPS[operation], words)

    def _init(self, world):
        if self._operation == "barrier":
            return world.Barrier_init()
        if self._operation == "broadcast":
            return world.Bcast_init(self._send, 0)
        made = world.Allreduce_init if self._operation == "sum" else world.Allgather_init
        return made(self._send, self._recv)

    def finish(self) -> None:
        """Verify and let the request go."""
        everyone = [contribution(r, self._send.size) for r in range(self._size)]
        expected = {
            "barrier": lambda: self._recv,
            "broadcast": lambda: everyone[0],
            "sum": lambda: np.sum(everyone, axis=0),  # of small integers: any order is exact
            "allgather": lambda: np.concatenate(everyone),
        }[self._operation]()
        actual = self._send if self._operation == "broadcast" else self._recv
        if not np.array_equal(actual, expected):
            raise AssertionError(f"{self._operation} of {self._send.nbytes} bytes: wrong result")
        if self._request is not None:
            self._request.Free()


def rank_main(options: argparse.Namespace) -> None:
    from mpi4py import MPI
    from mpi_symbols import register

    register(MPI)
    world = MPI.COMM_WORLD
    slowest = partial(world.allreduce, op=MPI.MAX)
    rows = []
    for label, operation, nbytes in (case for case in CASES if options.only in case[0]):
        ways = {"blocking": Way(MPI, world, operation, nbytes, persistent=False)}
        ways["persistent"] = Way(MPI, world, operation, nbytes, persistent=True)
        if operation == "sum":
            ways["allgather"] = Way(MPI, world, "allgather", nbytes, persistent=False)
        loops = {name: way.loop for name, way in ways.items()}
        samples = measure_loops(loops, slowest, options.rounds, options.block)
        for way in ways.values():
            way.finish()
        row = {"case": label, **ratio(samples["persistent"], samples["blocking"])}
        row |= {f"{name}_us": float(np.median(taken)) * 1e6 for name, taken in samples.items()}
        rows.append(row)
    if world.rank == 0:
        print(MARK + json.dumps({"mpi": library_name(MPI), "rows": rows}))


def show(result: dict) -> None:
    """Print a table that is also Markdown."""
    print(
        f"{describe(result)}; ratio = persistent / blocking\n\n"
        "| | blocking | persistent | ratio | quartiles | allgather of the same bytes |\n"
        "|---|---|---|---|---|---|"
    )
    for row in result["rows"]:
        gathered = f"{row['allgather_us']:.2f}" if "allgather_us" in row else ""
        print(
            f"| {row['case']} | {row['blocking_us']:.2f} | {row['persistent_us']:.2f} "
            f"| {row['ratio']:.2f} | {row['ratio_low']:.2f} to {row['ratio_high']:.2f} "
            f"| {gathered} |"
        )
    print()


def main() -> None:
    options = parse(parser_of(__doc__.splitlines()[0], with_ours=False))
    if options.rank:
        rank_main(options)
    else:
        run_jobs(__file__, options, show)


if __name__ == "__main__":
    main()
