"""The reads of a barrier of many ranks: all cells at once, beside one after the other.

    python -m bench.studies cells

Two ranks write and read lines of each other, one rank for each core. *Together*: a rank publishes
k lines, the other reads all k and answers with k lines. A core has several reads under way at a
time, as in a rank that reads the cells of k others. *In turn*: the answer to a line is a line, k
times, as in the rounds of a dissemination. Prints the median nanoseconds of one way, over blocks.
docs/design/growth.md draws conclusions for more ranks than there are cores.
"""

from __future__ import annotations

import time
from statistics import median

import numpy as np
from cobre_kernels.machine.atomics import cpu_pause, load_acquire, store_release
from numba import njit

from cobre_comm.testing import run_ranks

LINE_BYTES = 128  # from one cell to the next, as in the control region
LINES = (1, 2, 3, 4, 7, 15, 31, 63)
WAYS = 1000  # of a block
BLOCKS = 60
DEADLINE_S = 300


@njit(cache=True)
def publish(lines, count, number):
    """Write a number into each of ``count`` lines."""
    for k in range(count):
        store_release(lines + LINE_BYTES * k, number)


@njit(cache=True)
def await_lines(lines, count, number):
    """Return when each of ``count`` lines holds the number."""
    for k in range(count):
        while load_acquire(lines + LINE_BYTES * k) != number:
            cpu_pause()


@njit(cache=True)
def together(mine, theirs, is_first, count, began):
    """Send ``count`` lines each way at a time."""
    for number in range(began, began + WAYS):
        if is_first:
            publish(mine, count, number)
        await_lines(theirs, count, number)
        if not is_first:
            publish(mine, count, number)


@njit(cache=True)
def in_turn(mine, theirs, is_first, count, began):
    """Send one line each way, ``count`` times."""
    for number in range(began, began + WAYS):
        for k in range(count):
            line = LINE_BYTES * k
            if is_first:
                publish(mine + line, 1, number)
            await_lines(theirs + line, 1, number)
            if not is_first:
                publish(mine + line, 1, number)


def measure(comm, ways):
    """Return the median seconds of one way, for each function and number of lines."""
    most = max(LINES)
    with comm.create_shared_region(2 * most * LINE_BYTES, np.uint8) as region:
        first = region.as_slice().ctypes.data
        own, other = (first + rank * most * LINE_BYTES for rank in (comm.rank, 1 - comm.rank))
        taken = {(way.__name__, count): [] for way in ways for count in LINES}
        number = 1
        for _ in range(BLOCKS):
            for way in ways:
                for count in LINES:
                    comm.barrier()
                    start = time.perf_counter()
                    way(own, other, comm.rank == 0, count, number)
                    taken[way.__name__, count].append((time.perf_counter() - start) / WAYS / 2)
                    number += WAYS
    return {key: median(times) for key, times in taken.items()}


def main() -> None:
    """Measure, and print a table."""
    ways = (together, in_turn)
    found, _ = run_ranks("shm", 2, measure, ways, timeout_s=DEADLINE_S)
    print(f"{'lines':>6}{'together, ns':>15}{'in turn, ns':>15}")
    for count in LINES:
        times = [1e9 * found[way.__name__, count] for way in ways]
        print(f"{count:6}{times[0]:15.0f}{times[1]:15.0f}")
