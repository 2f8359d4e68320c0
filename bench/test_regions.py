"""Data of which every rank writes a part: a shared region and `fence`, beside `allgatherv`.

All ways live in the same processes and take turns. Bytes are those of all parts together.

- *populate*: each rank computes its part in place, then it is everyone's. Beside it: the same
  computing into a buffer of one's own and `allgatherv` (a copy for every rank), that `allgatherv`
  alone, without the computing, and a window of MPI's shared memory with `MPI_Win_fence`.
- *create and close*: a region of which nothing is used, beside a window of MPI. Ours has its memory
  from then on, or says that there is none; a window of MPI gets its memory with the first use.
- *create, populate, close*: so here both pay for it.

    python -m pytest bench/test_regions.py
"""

from __future__ import annotations

import pytest
from measurements import size_label
from mpi_start import LIBRARIES
from script_jobs import OURS, PEER, ScriptFigure, ScriptJobs, parametrize, ratio_to, told

MIB = 2**20
CASES = {
    "populate": "populate a region of {}",
    "create": "create and close a region of {}",
    "use": "create, populate and close a region of {}",
}
SIDES = {
    "populate": [OURS, "allgatherv", "allgatherv alone", PEER],
    "create": [OURS, PEER],
    "use": [OURS, PEER],
}
ESSENTIALS = {"populate": [8 * MIB, 64 * MIB], "create": [64 * MIB], "use": [64 * MIB]}
FULL = {
    "populate": [MIB // 16, MIB, 8 * MIB, 64 * MIB, 256 * MIB],
    "create": [MIB // 16, 8 * MIB, 64 * MIB, 256 * MIB],
    "use": [8 * MIB, 64 * MIB],
}
BY_LABEL = {
    name.format(size_label(nbytes)): (case, nbytes)
    for case, name in CASES.items()
    for nbytes in {*ESSENTIALS[case], *FULL[case]}
}


def pytest_generate_tests(metafunc) -> None:
    full = metafunc.config.getoption("full")
    figures = [
        ScriptFigure(CASES[case].format(size_label(nbytes)), side, ranks, mpi)
        for mpi in (LIBRARIES if full else LIBRARIES[:1])
        for ranks in (2, 4)
        for case, sizes in (FULL if full else ESSENTIALS).items()
        for nbytes in sizes
        for side in SIDES[case]
    ]
    parametrize(metafunc, figures)


@pytest.fixture(scope="module")
def region_jobs(request) -> ScriptJobs:
    def words_of(figures: list[ScriptFigure]) -> list:
        asked: dict[str, dict] = {case: {} for case in CASES}
        for figure in figures:
            case, nbytes = BY_LABEL[figure.label]
            asked[case][nbytes] = None
        return [word for case, sizes in asked.items() for word in (f"--{case}", *sizes)]

    return ScriptJobs(request, "regions_rank.py", words_of)


def test_region(record, region_jobs: ScriptJobs, script_figure: ScriptFigure) -> None:
    case, nbytes = BY_LABEL[script_figure.label]
    result = region_jobs.result(script_figure)
    samples = result[case][str(nbytes)]
    record(
        samples[script_figure.side],
        **told(script_figure, result),
        operation="region",
        bytes=nbytes // script_figure.ranks,
        moved_bytes=None if case == "create" else nbytes,
        **ratio_to(script_figure, samples),
    )
