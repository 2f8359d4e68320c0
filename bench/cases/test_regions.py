"""Every rank writes a part of shared data: a region and `fence`, beside `allgatherv`.

All ways live in the same processes and take turns. Bytes are those of all parts together.

- *populate*: each rank computes its part in place, and then makes it visible to all. One peer
  computes into a buffer of its own, and `allgatherv` makes a copy for every rank. The others are
  that `allgatherv` alone, and a window of MPI's shared memory with `MPI_Win_fence`.
- *create and close*: a region that is not used, beside a window of MPI. A region gets its memory
  when it is created, or raises; a window gets its memory with the first use.
- *create, populate, close*: here both pay for their memory.
"""

from bench.cases.grid import parametrize
from bench.peers import LIBRARIES
from bench.plan import PEER, Figure, Job, size_label
from bench.ranks.regions import Region

MIB = 2**20
LABELS = {
    "populate": "populate a region of {}",
    "create": "create and close a region of {}",
    "use": "create, populate and close a region of {}",
}
SIDES = {
    "populate": ["shm", "allgatherv", "allgatherv alone", PEER],
    "create": ["shm", PEER],
    "use": ["shm", PEER],
}
ESSENTIALS = {"populate": [8 * MIB, 64 * MIB], "create": [64 * MIB], "use": [64 * MIB]}
FULL = {
    "populate": [MIB // 16, MIB, 8 * MIB, 64 * MIB, 256 * MIB],
    "create": [MIB // 16, 8 * MIB, 64 * MIB, 256 * MIB],
    "use": [8 * MIB, 64 * MIB],
}


def figures(full: bool):
    for library in LIBRARIES if full else ["openmpi"]:
        for ranks in (2, 4):
            job = Job(ranks, library, "ranks.regions")
            for case, sizes in (FULL if full else ESSENTIALS).items():
                for nbytes in sizes:
                    label = LABELS[case].format(size_label(nbytes))
                    moved = 0 if case == "create" else nbytes
                    for side in SIDES[case]:
                        asked = Region(case, nbytes)
                        yield Figure(job, asked, side, label, "region", nbytes // ranks, moved)


def pytest_generate_tests(metafunc):
    parametrize(metafunc, figures(metafunc.config.getoption("full")))


def test_region(record_figure):
    record_figure()
