"""One copy by process_vm_readv(2) beside two through shared memory: 2 processes, the same bytes.

    python bench/single_copy.py

Each process hands its block to the other one, which reads it where it is, or in a slot that it was
copied to. Blocks are new in each exchange, as a program's are. Prints the median microseconds of
the slower process. The library itself does not read others' memory: docs/design/copies.md.
"""

from __future__ import annotations

import ctypes
import mmap
import multiprocessing
import os
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np

SIZES = (4096, 32_768, 200_000, 12_900_000)
ROUNDS = 60
SHARED_BYTES = 2 * SIZES[-1]
LIBC = ctypes.CDLL(None, use_errno=True)


class Piece(ctypes.Structure):
    """A ``struct iovec``."""

    _fields_ = (("start", ctypes.c_void_p), ("nbytes", ctypes.c_size_t))


def read_other(known: Any, other: int, into: np.ndarray) -> None:
    """Copy the memory of another process."""
    here, there = Piece(into.ctypes.data, into.nbytes), Piece(known[2 + other], into.nbytes)
    got = LIBC.process_vm_readv(known[other], ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    if got != into.nbytes:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def exchange(me: int, slots: np.ndarray, known: Any, meet: Any, told: Any) -> None:
    """Measure both ways, and tell the times by size."""
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[me]})
    known[me] = os.getpid()
    for nbytes in SIZES:
        mine, theirs = np.zeros(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
        known[2 + me] = mine.ctypes.data
        own, other = (slots[side * nbytes : (side + 1) * nbytes] for side in (me, 1 - me))
        ways = {
            "one copy": [partial(read_other, known, 1 - me, theirs)],
            "two copies": [
                partial(ctypes.memmove, own.ctypes.data, mine.ctypes.data, nbytes),
                partial(ctypes.memmove, theirs.ctypes.data, other.ctypes.data, nbytes),
            ],
        }
        taken: dict[str, list[float]] = {way: [] for way in ways}
        for number in range(ROUNDS):
            for way, steps in ways.items():
                mine[:] = 2 * (number % 100) + me
                taken[way].append(sum(timed(step, meet) for step in steps))
                assert (theirs == 2 * (number % 100) + 1 - me).all()
                meet.wait()
        told.put((nbytes, {way: median(samples) * 1e6 for way, samples in taken.items()}))


def timed(step: Callable[[], object], meet: Any) -> float:
    """Do it when both are there; return what it took, without the meeting before and after."""
    meet.wait()
    began = time.perf_counter()
    step()
    took = time.perf_counter() - began
    meet.wait()
    return took


def main() -> None:
    context = multiprocessing.get_context("fork")
    slots = np.frombuffer(mmap.mmap(-1, SHARED_BYTES), np.uint8)
    meet, told = context.Barrier(2), context.Queue()
    shared = (slots, context.Array("q", 4, lock=False), meet, told)
    pair = [context.Process(target=exchange, args=(me, *shared)) for me in range(2)]
    for process in pair:
        process.start()
    slowest: dict[int, dict[str, float]] = {}
    for nbytes, times in (told.get(timeout=120) for _ in range(2 * len(SIZES))):
        known = slowest.setdefault(nbytes, times)
        slowest[nbytes] = {way: max(known[way], took) for way, took in times.items()}
    for process in pair:
        process.join()
    for nbytes, times in sorted(slowest.items()):
        print(
            f"{nbytes:>10} B", *(f"{way}: {took:8.1f} us" for way, took in times.items()), sep="   "
        )


if __name__ == "__main__":
    main()
