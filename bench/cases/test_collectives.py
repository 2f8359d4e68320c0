"""Each collective from Python over shm, beside MPI and plain copies; how time grows.

Sizes are those of one rank's contribution. Our allreduce folds in rank order; an MPI library may
fold in another order. In our broadcast, each rank returns when all ranks have shown the same call.
In MPI's broadcast, the root returns when its bytes are on their way, so a loop of small broadcasts
measures MPI's throughput. Plain copies: each rank fills its receiving buffers from its own block.
An SDDP iteration is the traffic of the reference configuration, 587 MB: trial points (206 MB), 119
allgathervs of cuts (3.2 MB each), and two allreduces of bounds.
"""

from dataclasses import replace
from functools import partial

from bench.cases.grid import RANKS, collective_figures, figures_of, jobs_of, rows
from bench.plan import FRESH, IN_REGION, MEMCPY_ONCE, PEER, size_label
from bench.ranks.collectives import Collective
from bench.ranks.work import Case

MIB = 2**20
BARRIER = Case("barrier", "barrier")
ALLREDUCE = rows("allreduce", "sum", [8, 32, 4096, 32768, 524_288, 8 * MIB])
ALLGATHERV = rows("allgatherv", "allgatherv", [32, 4096, 200_000, 12_900_000])
BROADCAST = rows("broadcast", "broadcast", [10_000, 2 * MIB, 8 * MIB, 64 * MIB])
ITERATION = Case("one SDDP iteration", "sddp")
LARGE = "allgatherv 12.9 MB"  # plain copies are measured beside this row, too

INTO_REGION = [
    Collective(
        Case("allgatherv 200 kB into a region", "allgatherv", 200_000),
        (IN_REGION, PEER, MEMCPY_ONCE),
    ),
    Collective(
        Case("one SDDP iteration, pool and trial points in regions", "sddp"), (IN_REGION, PEER)
    ),
]

BARRIER_RANKS = (2, 4, 8, 16)
GATHERED = [MIB, 16 * MIB, 256 * MIB]  # bytes of two ranks together


def region_figures():
    """Return figures of collectives into a region, beside collectives into private memory."""
    jobs = jobs_of(RANKS, ["openmpi"])
    yield from figures_of(jobs, INTO_REGION, "into a region")
    asked = [replace(each, fresh=True) for each in INTO_REGION]
    yield from figures_of(jobs, asked, "into a region", FRESH)


def growth_figures():
    """Return figures of a barrier by number of ranks, and of an allgatherv by size of payload."""
    barrier = Collective(BARRIER, ("shm", PEER))
    yield from figures_of(jobs_of(BARRIER_RANKS, ["openmpi"]), [barrier], "growth")
    asked = [
        Collective(
            Case(f"allgatherv {size_label(total)} in all", "allgatherv", total // 2), ("shm", PEER)
        )
        for total in GATHERED
    ]
    for figure in figures_of(jobs_of([2], ["openmpi"]), asked, "growth"):
        yield replace(figure, sent=figure.received)  # the plot shows the bytes of all ranks


FIGURES = {
    "test_barrier": partial(collective_figures, [BARRIER]),
    "test_allreduce": partial(collective_figures, ALLREDUCE),
    "test_allgatherv": partial(collective_figures, ALLGATHERV, memcpy=LARGE),
    "test_broadcast": partial(collective_figures, BROADCAST),
    "test_sddp_iteration": partial(collective_figures, [ITERATION]),
    "test_into_region": region_figures,
    "test_growth": growth_figures,
}


def test_barrier(record_figure):
    record_figure()


def test_allreduce(record_figure):
    record_figure()


def test_allgatherv(record_figure):
    record_figure()


def test_broadcast(record_figure):
    record_figure()


def test_sddp_iteration(record_figure):
    record_figure()


def test_into_region(record_figure):
    record_figure()


def test_growth(record_figure):
    record_figure()
