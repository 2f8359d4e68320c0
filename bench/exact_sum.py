"""Beside a plain loop: what the exact sum of one rank's values costs, and of several ranks'.

    python bench/exact_sum.py
    cobre-comm run -n 2 bench/exact_sum.py

Each line is a kind of values and a length; times are medians of rounds in which the two take
turns, on fresh buffers of a ring larger than the caches. Results are compared with math.fsum.
"""

import math
import statistics
import time

import numpy as np
from numba import njit

from cobre_comm import create_communicator

ROUNDS = 31
RING_BYTES = 64 * 2**20
KINDS = {
    "similar": lambda rng, n: rng.standard_normal(n),
    "2^-30..2^30": lambda rng, n: np.ldexp(rng.standard_normal(n), rng.integers(-30, 30, n)),
    "2^-900..2^900": lambda rng, n: np.ldexp(rng.standard_normal(n), rng.integers(-900, 900, n)),
    "half zeros": lambda rng, n: rng.standard_normal(n) * (np.arange(n) % 2),
}


@njit
def plain_sum(values):
    total = 0.0
    for value in values:
        total += value
    return total


@njit(nogil=True)
def exact_sum(comm, values):
    return comm.exact_sum(values)


def buffers(draw, count, dtype):
    rng = np.random.default_rng(count)
    copies = max(2, min(ROUNDS, RING_BYTES // (count * np.dtype(dtype).itemsize)))
    return [draw(rng, count).astype(dtype) for _ in range(copies)]


def measure(comm, ring):
    """Return the median times of both, in seconds."""
    plain, exact = [], []
    for number in range(ROUNDS):
        values = ring[number % len(ring)]
        begin = time.perf_counter()
        plain_sum(values)
        middle = time.perf_counter()
        exact_sum(comm, values)
        plain.append(middle - begin)
        exact.append(time.perf_counter() - middle)
    return statistics.median(plain), statistics.median(exact)


def main():
    with create_communicator() as comm:
        if comm.rank == 0:
            print(f"{comm.backend}, {comm.size} ranks; each holds the values of its line")
            print(f"{'values':>16} {'dtype':>5} {'count':>9} {'plain us':>10} {'exact us':>10} "
                  f"{'speed':>6}")  # fmt: skip
        for name, draw in KINDS.items():
            for dtype, count in [("f8", 100), ("f8", 10_000), ("f8", 1_000_000), ("f4", 1_000_000)]:
                if dtype == "f4" and "900" in name:
                    continue
                ring = buffers(draw, count, dtype)
                right = math.fsum(np.concatenate([ring[0]] * comm.size))
                assert exact_sum(comm, ring[0]) == right
                plain_sum(ring[0])
                plain, exact = measure(comm, ring)
                if comm.rank == 0:
                    print(f"{name:>16} {dtype:>5} {count:9d} {plain * 1e6:10.2f} "
                          f"{exact * 1e6:10.2f} {plain / exact:6.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
