"""How time grows: a barrier's with the ranks, an allgatherv's with the payload.

All payloads of a job take turns in the same processes; their sizes here, and ``bytes``, are those
of what all ranks gather together. ``ratio_to`` has the time per byte over that of 16 MiB.
"""

import statistics

import grid
import pytest
from measurements import PEER, Entry, Figure, Job, Measurement, size_label
from recording import ratios
from tcp_cases import Case
from test_barrier import BARRIER

BARRIER_RANKS = (2, 4, 8, 16)
MIB = 2**20
REFERENCE = 16 * MIB
GATHERED = [16, 4096, 65536, MIB, REFERENCE, 256 * MIB]
ALL_GATHERED = [16 * 4**k for k in range(13)]
FULL_RANKS = (4, 8, 16)
MOST_BYTES = 1024 * MIB  # of one payload's receiving buffers, on all ranks together


def gathering(ranks: int, payloads: list[int]) -> Measurement:
    fitting = [n for n in payloads if n >= 8 * ranks and n * ranks <= MOST_BYTES]
    cases = [payload_case(total, ranks) for total in fitting]
    return Measurement(tuple(Entry(side, case) for case in cases for side in ("shm", PEER)))


def payload_case(total: int, ranks: int) -> Case:
    return Case(f"allgatherv {size_label(total)} in all", "allgatherv", total // ranks)


def barrier_figure(ranks: int, side: str) -> Figure:
    # The same measurement as in test_barrier.py, which a job takes once.
    measurement = grid.beside_library(BARRIER, "shm", single=True)
    return Figure(Job(ranks, "openmpi"), measurement, Entry(side, BARRIER))


def pytest_generate_tests(metafunc):
    if metafunc.function is test_barrier_growth:
        figures = [barrier_figure(n, side) for n in BARRIER_RANKS for side in ("shm", PEER)]
    else:
        full = metafunc.config.getoption("full")
        figures = [
            figure
            for ranks in (2, *(FULL_RANKS if full else ()))
            for figure in grid.figures_of(
                [Job(ranks, "openmpi")], [gathering(ranks, ALL_GATHERED if full else GATHERED)]
            )
        ]
    metafunc.parametrize("figure", [pytest.param(figure, id=figure.id) for figure in figures])


def test_barrier_growth(figure, jobs, record):
    told = jobs.told(figure)
    record(**told | {"operation": "growth"})


def test_allgatherv_growth(figure, jobs, record):
    told = jobs.told(figure)
    total = figure.received_bytes
    per_byte = [sample / total for sample in told["samples_s"]]
    told |= {"operation": "growth", "bytes": total, "s_per_byte": statistics.median(per_byte)}
    if figure.entry.is_ours:
        case = payload_case(REFERENCE, figure.job.ranks)
        reference = Figure(figure.job, figure.measurement, Entry("shm", case))
        at_reference = [sample / REFERENCE for sample in jobs.samples(reference)]
        told["ratio_to"]["16 MiB, per byte"] = ratios(per_byte, at_reference)
    record(**told)
