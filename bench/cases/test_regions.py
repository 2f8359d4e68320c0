"""Every rank writes a part of shared data: a region and `fence`, beside `allgatherv`.

All ways take turns in the same processes. Bytes are those of all parts together. In the first way,
each rank computes its part in place, in a region, and `fence` makes the part visible to all ranks.
In the second way, each rank computes into a buffer of its own, and `allgatherv` makes a copy for
every rank. The third way is a window of MPI's shared memory with `MPI_Win_fence`.
"""

from bench.cases.grid import RANKS
from bench.plan import PEER, Figure, Job, size_label
from bench.ranks.regions import Region

SIDES = "shm", "allgatherv", PEER
SIZES = 8 * 2**20, 64 * 2**20


def figures():
    for ranks in RANKS:
        job = Job(ranks, "openmpi", "ranks.regions")
        for nbytes in SIZES:
            label = f"populate a region of {size_label(nbytes)}"
            for side in SIDES:
                yield Figure(job, Region(nbytes), side, label, "region", nbytes // ranks, nbytes)


FIGURES = {"test_region": figures}


def test_region(record_figure):
    record_figure()
