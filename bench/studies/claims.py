"""What a claim costs in compiled code, alone and while others claim too; and what a reset costs.

    python -m bench.studies claims [RANKS]

Ranks over shared memory begin each round together, and claim until nothing is left. A round in
which one rank got much less than its share is left out: the other was alone for a while. Prints
medians over rounds, of rank 0.
"""

from __future__ import annotations

import sys
import time
from statistics import median

from numba import njit

from cobre_comm.testing import run_ranks

RANKS = 2  # each needs a core
ITEMS = 500_000
ROUNDS = 40
RESETS = 2000
FAIR = 0.8  # of an equal share
DEADLINE_S = 160


@njit(nogil=True)
def claim_all(work):
    """Claim until nothing is left; return how many items came."""
    claimed = 0
    while work.claim() >= 0:
        claimed += 1
    return claimed


def measure(comm):
    """Return nanoseconds of a claim, how many rounds were fair, and microseconds of a reset."""
    work, taken = comm.create_work(ITEMS), []
    claim_all(work)  # compiles
    for _ in range(ROUNDS):
        work.reset()
        start = time.perf_counter()
        claimed = claim_all(work)
        seconds = time.perf_counter() - start
        if comm.min(claimed) > FAIR * ITEMS / comm.size:
            taken.append(seconds / claimed * 1e9)
    start = time.perf_counter()
    for _ in range(RESETS):
        work.reset()
    return median(taken or [float("nan")]), len(taken), (time.perf_counter() - start) / RESETS * 1e6


def main() -> None:
    """Measure, and print a table."""
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else RANKS
    print(f"{'ranks':>5}{'claim, ns':>12}{'fair rounds':>14}{'reset, us':>12}")
    for size in dict.fromkeys((1, ranks)):
        claim_ns, fair, reset_us = run_ranks("shm", size, measure, timeout_s=DEADLINE_S)[0]
        print(f"{size:5}{claim_ns:12.1f}{fair:14}{reset_us:12.1f}")
