"""Each collective from Python over shm, beside MPI, gloo and plain copies; how time grows.

Sizes are those of one rank's contribution. We fold in rank order; a library need not. Our broadcast
returns when all ranks have shown the same call. MPI's root returns when its bytes are on their way,
so a loop of small broadcasts measures MPI's throughput. Plain copies: each rank fills its receiving
buffers from its own block. An SDDP iteration is the traffic of the reference
configuration, 587 MB: trial points (206 MB), 119 allgathervs of cuts (3.2 MB each), and two
allreduces of bounds.
"""

from dataclasses import replace

from bench.cases.grid import (
    RANKS,
    SIZES,
    collective_figures,
    figures_of,
    jobs_of,
    parametrize,
    rows,
)
from bench.plan import FRESH, IN_REGION, MEMCPY, MEMCPY_ONCE, PEER, size_label
from bench.ranks.collectives import Collective
from bench.ranks.work import Case

MIB = 2**20
BARRIER = Case("barrier", "barrier")
ALLREDUCE = rows("allreduce", "sum", [8, 32, 4096, 32768, 524_288, 8 * MIB])
ALLGATHERV = rows("allgatherv", "allgatherv", [32, 4096, 200_000, 12_900_000])
BROADCAST = rows("broadcast", "broadcast", [10_000, 8 * MIB])
ITERATION = Case("one SDDP iteration", "sddp")
LARGE = ["allgatherv 200 kB", "allgatherv 12.9 MB", "broadcast 8 MiB"]

INTO_REGION = [
    Collective(
        Case("allgatherv 200 kB into a region", "allgatherv", 200_000),
        (IN_REGION, PEER, MEMCPY, MEMCPY_ONCE),
    ),
    Collective(
        Case("allgatherv 12.9 MB into a region", "allgatherv", 12_900_000),
        (IN_REGION, PEER, MEMCPY_ONCE),
    ),
    Collective(
        Case("one SDDP iteration, pool and trial points in regions", "sddp"), (IN_REGION, PEER)
    ),
]

ESSENTIALS = {
    "test_barrier": [BARRIER],
    "test_allreduce": ALLREDUCE,
    "test_allgatherv": ALLGATHERV,
    "test_broadcast": BROADCAST,
}
MORE = {
    "test_allreduce": rows("allreduce", "sum", SIZES),
    "test_allgatherv": rows("allgatherv", "allgatherv", SIZES),
    "test_broadcast": rows("broadcast", "broadcast", SIZES),
}

BARRIER_RANKS = (2, 4, 8, 16)
GATHERED = [16, 4096, 65536, MIB, 16 * MIB, 256 * MIB]  # by all ranks together
ALL_GATHERED = [16 * 4**k for k in range(13)]


def pytest_generate_tests(metafunc):
    full = metafunc.config.getoption("full")
    name = metafunc.function.__name__
    if name == "test_growth":
        figures = growth_figures(full)
    elif name == "test_into_region":
        figures = region_figures()
    elif name == "test_sddp_iteration":
        figures = collective_figures(full, [ITERATION], gloo=False, more_ranks=(1, 3))
    else:
        essentials = ESSENTIALS[name]
        more = [case for case in MORE.get(name, []) if case not in essentials]
        figures = collective_figures(full, essentials, more, memcpy=LARGE)
    parametrize(metafunc, figures)


def region_figures():
    """Return figures of collectives into a region, beside those into memory of each rank."""
    jobs = jobs_of(RANKS, ["openmpi"])
    yield from figures_of(jobs, INTO_REGION, "into a region")
    asked = [replace(each, fresh=True) for each in INTO_REGION]
    yield from figures_of(jobs, asked, "into a region", FRESH)


def growth_figures(full: bool):
    """Return a barrier on more and more ranks, and an allgatherv of larger and larger payloads."""
    barrier = Collective(BARRIER, ("shm", PEER))
    yield from figures_of(jobs_of(BARRIER_RANKS, ["openmpi"]), [barrier], "growth")
    for ranks in (2, 4, 8, 16) if full else (2,):
        payloads = [n for n in (ALL_GATHERED if full else GATHERED) if n >= 8 * ranks]
        cases = [
            Case(f"allgatherv {size_label(total)} in all", "allgatherv", total // ranks)
            for total in payloads
        ]
        asked = [Collective(case, ("shm", PEER)) for case in cases]
        for figure in figures_of(jobs_of([ranks], ["openmpi"]), asked, "growth"):
            yield replace(figure, sent=figure.received)  # the report's axis: bytes of all ranks


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
