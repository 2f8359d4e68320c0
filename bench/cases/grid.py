"""Make benchmarks of rows: one benchmark for each row, number of ranks, library and side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bench.peers import LIBRARIES, PEERS
from bench.plan import FRESH, MEMCPY, PEER, Figure, Job, size_label
from bench.ranks.collectives import Collective
from bench.ranks.work import CALLS, SDDP_BYTES, Case

NAMES = {call: name for name, call in CALLS.items()}
RANKS = (2, 4)
# of all ranks together on one side; two sides have such buffers at a time
MOST_GATHERED_BYTES = 512 * 2**20


def rows(name: str, operation: str, sizes: Iterable[int]) -> list[Case]:
    """Return the cases of an operation, with the labels that they have in the report."""
    return [Case(f"{name} {size_label(nbytes)}", operation, nbytes) for nbytes in sizes]


def shared_case(label: str, operation: str, nbytes: int, ranks: int) -> Case:
    """Return a case of ``nbytes`` on each rank, or, for an allgatherv, on all ranks together."""
    share = nbytes // ranks if operation == "allgatherv" else nbytes
    return Case(label, CALLS.get(operation, operation), share // 8 * 8)


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
            name = operation or NAMES.get(case.operation, case.operation)
            for side in asked.sides:
                yield Figure(job, asked, side, case.label, name, sent, received, setting)


def bytes_of(case: Case, ranks: int) -> tuple[int, int]:
    """Return the bytes that a rank contributes to one call, and those that it receives."""
    if case.operation == "sddp":
        return SDDP_BYTES // ranks, SDDP_BYTES
    return case.nbytes, case.nbytes * (ranks if case.operation == "allgatherv" else 1)


def collective_figures(cases: Sequence[Case], memcpy: str = "") -> Iterator[Figure]:
    """Return a collective's figures over shm; the case labelled ``memcpy`` has plain copies too."""

    def asked(case: Case) -> Collective:
        copies = [MEMCPY] * (case.label == memcpy)
        return Collective(case, ("shm", PEER, *copies))

    jobs = jobs_of(RANKS, PEERS)
    yield from figures_of(jobs, map(asked, cases))
    with_data = [
        Collective(c, ("shm", PEER), fresh=True) for c in cases if c.nbytes or c.operation == "sddp"
    ]
    yield from figures_of(jobs, with_data, setting=FRESH)
