"""One copy by process_vm_readv(2) beside two through slots, and beside an MPI: 2 ranks.

    python -m bench.studies single_copy
    python -m bench.studies single_copy --library mpich

Each way moves the same bytes by turns, in the same processes. ``one copy`` is what a collective
would do that reads the peer's array where it is: a step, the call, the copy of the own block, and
a last step. Before that no rank may return, because the peer may still read its array. Blocks are
the same in each call, or written anew before it. Prints microseconds of a call on the slower rank:
the fastest block of calls, their median, and the CPU time. Of the library's own collectives large
broadcasts alone use it: docs/design/copies.md.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import time
from collections.abc import Callable, Sequence
from statistics import median

import numpy as np

from bench.jobs import run_job
from bench.peers import LIBRARIES
from bench.plan import Job
from cobre_comm import ReduceOp, ShmBackend, ShmConfig

ALLGATHERV = (200_000, 2_097_152, 12_900_000)
BROADCAST = (524_288, 2_097_152, 8_388_608)
ALLREDUCE = (524_288, 8_388_608)
BLOCK_S = 0.02
LIBC = ctypes.CDLL(None, use_errno=True)


class Piece(ctypes.Structure):
    """A ``struct iovec``."""

    _fields_ = (("start", ctypes.c_void_p), ("nbytes", ctypes.c_size_t))


def reader(pid: int, address: int, into: np.ndarray) -> Callable[[], None]:
    """Return a function that copies the memory of another process."""
    here, there = Piece(into.ctypes.data, into.nbytes), Piece(address, into.nbytes)
    arguments = pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0

    def read() -> None:
        if LIBC.process_vm_readv(*arguments) != into.nbytes:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    return read


def addresses(world, array: np.ndarray) -> list[tuple[int, int]]:
    """Return the process and the address of the array of each rank."""
    return world.allgather((os.getpid(), array.ctypes.data))


def allgatherv_ways(world, comm, slots, nbytes: int) -> tuple[np.ndarray, np.ndarray, dict]:
    """Return this rank's block, all blocks, and the ways to gather."""
    me, peer = world.rank, 1 - world.rank
    mine, out = np.zeros(nbytes, np.uint8), np.zeros(2 * nbytes, np.uint8)
    counts, displs = np.array([nbytes] * 2), np.array([0, nbytes])
    places = addresses(world, mine)
    read = reader(*places[peer], out[peer * nbytes :][:nbytes])
    own = out[me * nbytes :][:nbytes]

    def one_copy() -> None:
        comm.barrier()
        read()
        np.copyto(own, mine)
        comm.barrier()

    return (
        mine,
        out,
        {
            "slots": lambda: slots.allgatherv(mine, out, counts, displs),
            "one copy": one_copy,
            "MPI": lambda: world.Allgather(mine, out),
        },
    )


def broadcast_ways(world, comm, slots, nbytes: int) -> tuple[np.ndarray, np.ndarray, dict]:
    """Return the buffer twice, and the ways to broadcast it from rank 0."""
    buf = np.zeros(nbytes, np.uint8)
    places = addresses(world, buf)
    read = reader(*places[0], buf) if world.rank else lambda: None

    def one_copy() -> None:
        comm.barrier()
        read()
        comm.barrier()

    return (
        buf,
        buf,
        {
            "ours": lambda: comm.broadcast(buf),
            "slots": lambda: slots.broadcast(buf),
            "one copy": one_copy,
            "MPI": lambda: world.Bcast(buf),
        },
    )


def allreduce_ways(world, comm, slots, nbytes: int) -> tuple[np.ndarray, np.ndarray, dict]:
    """Return this rank's numbers, the sums, and the ways to add: a half on each rank, then read."""
    me, peer, half = world.rank, 1 - world.rank, nbytes // 16
    mine, total, theirs = np.zeros(nbytes // 8), np.zeros(nbytes // 8), np.zeros(half)
    part, other = slice(me * half, (me + 1) * half), slice(peer * half, (peer + 1) * half)
    pid, address = addresses(world, mine)[peer]
    pid, result = addresses(world, total)[peer]
    read_theirs = reader(pid, address + 8 * part.start, theirs)
    read_result = reader(pid, result + 8 * other.start, total[other])
    operands = (mine[part], theirs) if me == 0 else (theirs, mine[part])

    def one_copy() -> None:
        comm.barrier()
        read_theirs()
        np.add(*operands, out=total[part])
        comm.barrier()
        read_result()
        comm.barrier()

    return (
        mine,
        total,
        {
            "slots": lambda: slots.allreduce(mine, total, ReduceOp.SUM),
            "one copy": one_copy,
            "MPI": lambda: world.Allreduce(mine, total),
        },
    )


CASES = {
    "allgatherv": (allgatherv_ways, ALLGATHERV),
    "broadcast": (broadcast_ways, BROADCAST),
    "allreduce": (allreduce_ways, ALLREDUCE),
}


def block_of_calls(world, way: Callable[[], object], data, calls: int, fresh: bool):
    """Return wall and CPU seconds of a call, without the writing of fresh data."""
    wall = cpu = 0.0
    for number in range(calls if fresh else 1):
        if fresh:
            data[:] = number % 100
        world.Barrier()
        began, used = time.perf_counter(), time.process_time()
        for _ in range(1 if fresh else calls):
            way()
        cpu += time.process_time() - used
        wall += time.perf_counter() - began
    return wall / calls, cpu / calls


def measure(_comm, rounds: int, only: str) -> list[str]:
    """Take all measurements; return lines of a table."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    name = world.bcast(f"/single-copy-{os.getpid()}")
    lines = []
    with ShmBackend(ShmConfig(name=name, rank=world.rank, size=world.size)) as comm:
        slots = comm.split_local()
        slots._comm.node.reading.is_refused = 1
        asked = [case for case in CASES.items() if only in case[0]]
        for operation, (make, sizes) in asked:
            for nbytes in sizes:
                data, result, ways = make(world, comm, slots, nbytes)
                compare(world, data, result, ways)
                for fresh in (False, True):
                    taken = take(world, ways, data, nbytes, rounds, fresh)
                    title = f"{operation:>10} {nbytes:>9} B {'fresh' if fresh else 'same':>5}"
                    lines.append(title + "".join(taken))
        slots.close()
    return lines


def compare(world, data, result, ways: dict) -> None:
    """Check that all ways move the same bytes."""
    results = []
    for call in ways.values():
        result[:] = 0
        data[:] = 1 + world.rank + np.arange(data.size) % 50
        world.Barrier()
        call()
        results.append(result.copy())
        world.Barrier()
    if not all((other == results[0]).all() for other in results):
        raise AssertionError("the ways do not agree")


def take(world, ways: dict, data, nbytes: int, rounds: int, fresh: bool) -> list[str]:
    """Measure the ways by turns; return the cells of a line."""
    calls = max(3, int(BLOCK_S / (nbytes * 2e-10 + 1e-5)))
    samples: dict[str, list] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, call in ways.items():
            samples[way].append(block_of_calls(world, call, data, calls, fresh))
    cells = []
    for way, pairs in samples.items():
        slowest = [tuple(map(max, zip(*both, strict=True))) for both in each_rank(world, pairs)]
        walls, cpus = zip(*slowest, strict=True)
        least, middle, cpu = min(walls), median(walls), median(cpus)
        cells.append(f"   {way}: {least * 1e6:6.0f} {middle * 1e6:6.0f} {cpu * 1e6:6.0f}")
    return cells


def each_rank(world, pairs: Sequence[tuple[float, float]]) -> list:
    """Return the samples of both ranks, block by block."""
    return list(zip(*world.allgather(pairs), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", choices=list(LIBRARIES), default="openmpi")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", metavar="WORD", help="one collective")
    chosen = parser.parse_args()
    print(f"{LIBRARIES[chosen.library]}; fastest block, median, CPU time; microseconds")
    print(*run_job(Job(2, chosen.library), measure, chosen.rounds, chosen.only), sep="\n")
