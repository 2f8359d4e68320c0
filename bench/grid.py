"""From the rows of a file to its benchmarks: x ranks x libraries x sides."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Sequence

import pytest
from measurements import GLOO, MEMCPY, PEER, Entry, Figure, Job, Measurement, size_label
from mpi_start import LIBRARIES
from tcp_cases import Case

RANKS, MORE_RANKS = (2, 4), (1, 3, 8)
SIZES = [8 * 4**k for k in range(12)] + [64 * 2**20]  # 8 B to 32 MiB, and 64 MiB: --full
MOST_GATHERED_BYTES = 512 * 2**20  # by all ranks of a job together; two sides have such buffers
NO_TORCH = (
    "gloo is measured where torch is: pip install torch --index-url "
    "https://download.pytorch.org/whl/cpu"
)


def rows(name: str, operation: str, sizes: Iterable[int]) -> list[Case]:
    """Return the cases of an operation, labelled as in the report."""
    return [Case(f"{name} {size_label(nbytes)}", operation, nbytes) for nbytes in sizes]


def beside_library(case: Case, *ours: str, memcpy: bool = False, single: bool = False):
    """Return the measurement in which backends of ours and the library take turns."""
    sides = [*ours, PEER, *[MEMCPY] * memcpy]
    return Measurement(tuple(Entry(side, case) for side in sides), single)


def figures_of(jobs: Iterable[Job], measurements: Sequence[Measurement]) -> Iterator[Figure]:
    for job in jobs:
        for measurement in measurements:
            for entry in measurement.entries:
                yield Figure(job, measurement, entry)


def parametrize(
    metafunc: pytest.Metafunc,
    essentials: Sequence[Case],
    more: Sequence[Case] = (),
    backends: Sequence[str] = (),
    memcpy: Sequence[str] = (),
    single: Sequence[str] = (),
    gloo: bool = True,
    more_ranks: Sequence[int] = MORE_RANKS,
) -> None:
    """Give a test its argument ``figure``: the essentials, and with --full the long grid.

    Parameters
    ----------
    metafunc : pytest.Metafunc
        As ``pytest_generate_tests`` gets it.
    essentials, more : sequence of Case
        Rows at 2 and 4 ranks; with --full, ``more`` rows too, and the essentials at
        ``more_ranks``.
    backends, memcpy, single : sequence of str
        Labels of the rows that are also measured over tcp and mpi (with --full), beside plain
        copies, and call by call.
    gloo : bool
        Whether the essentials are measured over gloo too, with 2 ranks.
    """

    def measurement(case: Case) -> Measurement:
        with_copies, one_by_one = case.label in memcpy, case.label in single
        return beside_library(case, "shm", memcpy=with_copies, single=one_by_one)

    full = metafunc.config.getoption("full")
    plain = [measurement(case) for case in essentials]
    figures = list(figures_of(jobs_of(RANKS), plain))
    if full:
        figures += figures_of(jobs_of(RANKS), [measurement(case) for case in more])
        figures += figures_of(jobs_of(more_ranks), plain)
        all_ours = [beside_library(c, "tcp", "mpi") for c in essentials if c.label in backends]
        figures += (f for f in figures_of(jobs_of((2,)), all_ours) if f.entry.is_ours)
    params = [pytest.param(figure, id=figure.id) for figure in figures if fits(figure)]
    if gloo:
        apart = [Measurement((Entry(GLOO, case),)) for case in essentials]
        skip = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason=NO_TORCH)
        params += [
            pytest.param(figure, id=figure.id, marks=skip)
            for figure in figures_of([Job(2, GLOO)], apart)
        ]
    metafunc.parametrize("figure", params)


def jobs_of(ranks: Iterable[int]) -> list[Job]:
    return [Job(size, library) for size in ranks for library in LIBRARIES]


def fits(figure: Figure) -> bool:
    """Whether the ranks' buffers of a gathering are no larger than this file allows."""
    gathers = figure.operation == "allgatherv"
    return not gathers or figure.received_bytes * figure.job.ranks <= MOST_GATHERED_BYTES
