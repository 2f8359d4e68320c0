"""A program for version 0.4, which uses every name and form that 1.0 lacks, and prints a hash.

Each line to change is marked. `test_moving.py` changes these lines, and compares the hashes.
"""

import hashlib

import numpy as np
from numba import njit

from cobre_comm import LocalBackend, TcpConfig, launch, random
from cobre_comm.random import stream  # old

CONFIG = {"COBRE_TCP_RANK": "0", "COBRE_TCP_SIZE": "1"}
LEADERS = "2"


@njit
def compiled(comm, region, work, seed):
    """Fill this rank's part of a region; return sums of what the methods give."""
    start, stop = comm.block(region.count)  # old
    counts, displs = comm.layout(region.count, 2)  # old
    before = comm.enter(0)  # old
    part = region.block(start, stop)  # old
    for i in range(part.size):
        part[i] = random.uniform(random.stream(seed, start + i), 0)  # old
    return before + counts.sum() + displs.sum() + 10 * work.first + 100 * work.last  # old


def results(comm, seed):
    """Return numbers and arrays that the old names give."""
    start, stop = comm.block(10)  # old
    counts, displs = comm.layout(10, 2)  # old
    region = comm.create_shared_region(10, float, "leader")  # old
    work = comm.create_work(4)
    sums = compiled(comm, region, work, seed)
    region.fence()
    drawn = region.as_slice()
    region = comm.create_shared_region(10)
    for row in range(start, stop):
        region.block(row, row + 1)[0] = random.normal(stream(seed), row)  # old
    region.fence()
    work.reset([3, 1, 2, 0], None)  # old
    items = [work.claim() for _ in range(work.first, work.last)]  # old
    taken = work.costs() > 0  # old
    outer = comm.enter(comm.phase_number("last"))  # old
    return drawn, region.as_slice(), counts, displs, sums, items, taken, outer


def main():
    """Print the hash of all results."""
    digest = hashlib.sha256()
    with LocalBackend() as comm:
        found = results(comm, 7)
    found += launch(results, 1, "local", (8,)).value  # old
    found += (TcpConfig.from_env({**CONFIG, "COBRE_LEADERS": LEADERS}).leaders,)  # old
    for each in found:
        digest.update(np.asarray(each).tobytes())
    print(len(found), digest.hexdigest())


if __name__ == "__main__":
    main()
