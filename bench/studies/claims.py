"""What a claim costs in compiled code, alone and while others claim too; and what a reset costs.

    python -m bench.studies claims [RANKS]

Beside a claim, a loop in C is measured that only adds one to a word of the same kind of memory:
`__atomic_fetch_add`, by the compiler `cc`. Ranks over shared memory begin each round together, and
claim until no item is left. A round in which one rank got much less than its share is left out,
because the other rank was alone for a while. Prints medians over rounds, of rank 0.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from numba import njit

from cobre_comm.testing import run_ranks

RANKS = 2  # each rank needs a core
ITEMS = 500_000
ADDITIONS = 4 * ITEMS  # so many additions take at most as long as ITEMS claims
ROUNDS = 40
RESETS = 2000
FAIR = 0.8  # in a fair round, a rank gets at least this part of an equal share
DEADLINE_S = 160
SOURCE = """
long add_all(long *made, long items) {
    long claimed = 0;
    while (__atomic_fetch_add(made, 1, __ATOMIC_SEQ_CST) < items) claimed++;
    return claimed;
}
"""


@njit(nogil=True)
def claim_all(work):
    """Claim until no item is left; return how many items were claimed."""
    claimed = 0
    while work.claim() >= 0:
        claimed += 1
    return claimed


def compiled(folder: Path) -> Path:
    """Compile the loop in C; return the library with the loop."""
    library = folder / "add.so"
    command = ["cc", "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", library]
    subprocess.run(command, input=SOURCE, text=True, check=True)
    return library


def claim_ns(
    comm, items: int, begin: Callable[[], None], claim: Callable[[], int]
) -> tuple[float, int]:
    """Return the nanoseconds of a claim, and how many rounds were fair."""
    taken = []
    for _ in range(ROUNDS):
        begin()
        start = time.perf_counter()
        claimed = claim()
        seconds = time.perf_counter() - start
        if comm.min(claimed) > FAIR * items / comm.size:
            taken.append(seconds / claimed * 1e9)
    return median(taken or [float("nan")]), len(taken)


def measure(comm, library: Path) -> tuple[float, ...]:
    """Return ns and fair rounds of claims and of additions, and the microseconds of a reset."""
    work = comm.create_work(ITEMS)
    claim_all(work)  # this call compiles
    claims = claim_ns(comm, ITEMS, work.reset, partial(claim_all, work))
    start = time.perf_counter()
    for _ in range(RESETS):
        work.reset()
    reset_us = (time.perf_counter() - start) / RESETS * 1e6
    add_all = ctypes.CDLL(str(library)).add_all
    add_all.argtypes, add_all.restype = [ctypes.c_void_p, ctypes.c_long], ctypes.c_long
    with comm.create_shared_region(8, np.int64) as region:
        made = region.part(0, region.count)

        def begin() -> None:
            if comm.rank == 0:
                made[0] = 0
            region.fence()

        additions = claim_ns(comm, ADDITIONS, begin, partial(add_all, made.ctypes.data, ADDITIONS))
    return *claims, *additions, reset_us


def main() -> None:
    """Measure, and print a table."""
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else RANKS
    print(f"{'ranks':>5}{'claim, ns':>12}{'fair':>6}{'in C, ns':>12}{'fair':>6}{'reset, us':>12}")
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(Path(folder))
        for size in dict.fromkeys((1, ranks)):
            row = run_ranks("shm", size, measure, library, timeout_s=DEADLINE_S)[0]
            print(f"{size:5}{row[0]:12.1f}{row[1]:6}{row[2]:12.1f}{row[3]:6}{row[4]:12.1f}")
