"""One copy by process_vm_readv(2) beside two through shared memory: 2 ranks, the same bytes.

    python -m bench.studies single_copy

Each rank hands its block to the other one, which reads it where it is, or in a slot that it was
copied to. Blocks are new in each exchange, as a program's are. Prints the median microseconds of
the slower rank. The library itself does not read others' memory: docs/design/copies.md.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np

from cobre_comm.testing import run_ranks

SIZES = (4096, 32_768, 200_000, 12_900_000)
ROUNDS = 60
DEADLINE_S = 300
LIBC = ctypes.CDLL(None, use_errno=True)


class Piece(ctypes.Structure):
    """A ``struct iovec``."""

    _fields_ = (("start", ctypes.c_void_p), ("nbytes", ctypes.c_size_t))


def read_other(pid: int, address: int, into: np.ndarray) -> None:
    """Copy the memory of another process."""
    here, there = Piece(into.ctypes.data, into.nbytes), Piece(address, into.nbytes)
    got = LIBC.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    if got != into.nbytes:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def exchange(comm, nbytes: int) -> dict[str, float]:
    """Return the median seconds of both ways on this rank."""
    me, peer = comm.rank, 1 - comm.rank
    mine, theirs = np.zeros(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
    known = np.zeros(4, np.int64)
    comm.allgatherv(np.array([os.getpid(), mine.ctypes.data]), known, [2, 2], [0, 2])
    with comm.create_shared_region(2 * nbytes, np.uint8) as region:
        own = region.block(me * nbytes, (me + 1) * nbytes)
        other = region.as_slice()[peer * nbytes : (peer + 1) * nbytes]
        ways = {
            "one copy": [partial(read_other, *map(int, known[2 * peer :][:2]), theirs)],
            "two copies": [partial(np.copyto, own, mine), partial(np.copyto, theirs, other)],
        }
        taken: dict[str, list[float]] = {way: [] for way in ways}
        for number in range(ROUNDS):
            for way, steps in ways.items():
                mine[:] = 2 * (number % 100) + me
                taken[way].append(sum(timed(step, comm) for step in steps))
                if not (theirs == 2 * (number % 100) + peer).all():
                    raise AssertionError(f"{way} of {nbytes} bytes: not what the peer has written")
                comm.barrier()
    return {way: median(samples) for way, samples in taken.items()}


def timed(step: Callable[[], object], comm) -> float:
    """Take a step when both are there; return its seconds, without the barriers around it."""
    comm.barrier()
    began = time.perf_counter()
    step()
    took = time.perf_counter() - began
    comm.barrier()
    return took


def main() -> None:
    for nbytes in SIZES:
        pair = run_ranks("shm", 2, exchange, nbytes, timeout_s=DEADLINE_S)
        slowest = {way: max(told[way] for told in pair) for way in pair[0]}
        times = (f"{way}: {seconds * 1e6:8.1f} us" for way, seconds in slowest.items())
        print(f"{nbytes:>10} B", *times, sep="   ")
