"""Calls inside @njit loops: ours, numba-mpi's, and a cache line that two cores hand back and forth.

All live in the same processes, which Open MPI or MPICH has started, and take turns. numba-mpi
(GPL-3.0) is measured here and nothing else: ``pip install numba-mpi``, or into a folder of its own
by ``--target DIR``, with that folder in PYTHONPATH.

    python -m pytest bench/test_njit_loops.py
"""

from __future__ import annotations

import pytest
from mpi_start import LIBRARIES
from njit_rank import CASES, has_numba_mpi
from script_jobs import OURS, ScriptFigure, ScriptJobs, parametrize, ratio_to, told

NUMBA_MPI, PING_PONG = "numba-mpi", "ping-pong"
IN_NJIT = " in @njit"


def figures(full: bool) -> list[ScriptFigure]:
    made = []
    for ranks in (2, 4) if full else (2,):
        for case in CASES:
            sides = [OURS, NUMBA_MPI]
            sides += [PING_PONG] if case == "barrier" and ranks == 2 else []
            made += [
                ScriptFigure(case + IN_NJIT, side, ranks, mpi)
                for side in sides
                for mpi in LIBRARIES
            ]
    return made


def pytest_generate_tests(metafunc) -> None:
    parametrize(metafunc, figures(metafunc.config.getoption("full")))


def case_of(figure: ScriptFigure) -> str:
    return figure.label.removesuffix(IN_NJIT)


@pytest.fixture(scope="module")
def loop_jobs(request) -> ScriptJobs:
    return ScriptJobs(
        request, "njit_rank.py", lambda asked: ["--cases", *dict.fromkeys(map(case_of, asked))]
    )


def test_njit_loop(record, loop_jobs: ScriptJobs, script_figure: ScriptFigure) -> None:
    if script_figure.side == NUMBA_MPI and not has_numba_mpi():
        pytest.skip("numba-mpi is not there: pip install numba-mpi")
    result = loop_jobs.result(script_figure)
    samples = result["samples"][case_of(script_figure)]
    operation, nbytes = CASES[case_of(script_figure)]
    record(
        samples[script_figure.side],
        **told(script_figure, result),
        operation=f"njit {operation}".replace("allgather", "allgatherv"),
        bytes=nbytes,
        numba_mpi=result["numba_mpi"],
        **ratio_to(script_figure, samples),
    )
