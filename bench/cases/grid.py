"""Make benchmarks of rows: one for each row, number of ranks, library and side."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Sequence

import pytest

from bench.peers import LIBRARIES, PEERS
from bench.plan import FRESH, GLOO, MEMCPY, PEER, Figure, Job, size_label
from bench.ranks.collectives import Collective
from bench.ranks.work import SDDP_BYTES, Case

OPERATIONS = {"sum": "allreduce"}  # names of cases and of the report
RANKS = (2, 4)
MOST_GATHERED_BYTES = 512 * 2**20  # by all ranks of a job together; two sides have such buffers
NO_TORCH = (
    "gloo is measured where torch is: pip install torch --index-url "
    "https://download.pytorch.org/whl/cpu"
)


def rows(name: str, operation: str, sizes: Iterable[int]) -> list[Case]:
    """Return the cases of an operation, labelled as in the report."""
    return [Case(f"{name} {size_label(nbytes)}", operation, nbytes) for nbytes in sizes]


def jobs_of(ranks: Iterable[int], libraries: Iterable[str] = LIBRARIES, **job) -> list[Job]:
    return [Job(size, library, **job) for size in ranks for library in libraries]


def figures_of(
    jobs: Iterable[Job],
    measurements: Iterable[Collective],
    operation: str = "",
    setting: str = "",
) -> Iterator[Figure]:
    """Return a figure for each side of each measurement in each job that has room for it."""
    measurements = list(measurements)
    for job in jobs:
        for asked in measurements:
            case = asked.case
            sent, received = bytes_of(case, job.ranks)
            gathers = case.operation == "allgatherv"
            if gathers and received * job.ranks > MOST_GATHERED_BYTES:
                continue
            name = operation or OPERATIONS.get(case.operation, case.operation)
            for side in asked.sides:
                yield Figure(job, asked, side, case.label, name, sent, received, setting)


def bytes_of(case: Case, ranks: int) -> tuple[int, int]:
    """Return the bytes that a rank contributes to one call, and those that it receives."""
    if case.operation == "sddp":
        return SDDP_BYTES // ranks, SDDP_BYTES
    return case.nbytes, case.nbytes * (ranks if case.operation == "allgatherv" else 1)


def parametrize(metafunc: pytest.Metafunc, figures: Iterable[Figure]) -> None:
    """Make each figure a benchmark; those of gloo are skipped where torch is missing."""
    skip = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason=NO_TORCH)
    metafunc.parametrize(
        "figure",
        [
            pytest.param(figure, id=figure.id, marks=[skip] * (figure.job.library == GLOO))
            for figure in dict.fromkeys(figures)
        ],
    )


def collective_figures(
    cases: Sequence[Case], memcpy: Sequence[str] = (), gloo: bool = True
) -> Iterator[Figure]:
    """Return the figures of a collective over shm at 2 and 4 ranks.

    Parameters
    ----------
    cases : sequence of Case
        The rows.
    memcpy : sequence of str
        Labels of the rows that are also measured beside plain copies.
    gloo : bool
        Whether the rows are measured over gloo too, with 2 ranks.
    """

    def asked(case: Case) -> Collective:
        copies = [MEMCPY] * (case.label in memcpy)
        return Collective(case, ("shm", PEER, *copies))

    jobs = jobs_of(RANKS, PEERS)
    yield from figures_of(jobs, map(asked, cases))
    with_data = [
        Collective(c, ("shm", PEER), fresh=True) for c in cases if c.nbytes or c.operation == "sddp"
    ]
    yield from figures_of(jobs, with_data, setting=FRESH)
    if gloo:
        yield from figures_of([Job(2, GLOO)], [Collective(case, (GLOO,)) for case in cases])
