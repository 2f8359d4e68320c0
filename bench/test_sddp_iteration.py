"""The traffic of one SDDP iteration of the reference configuration, 587 MB, beside MPI.

One allgatherv of trial points (206 MB), 119 of cuts (3.2 MB each), and the two allreduces of the
bounds; ``tcp_cases.Work`` has it call by call.
"""

import grid
from tcp_cases import Case

ITERATION = Case("one SDDP iteration", "sddp")


def pytest_generate_tests(metafunc):
    grid.parametrize(metafunc, [ITERATION], gloo=False, more_ranks=(1, 3))


def test_sddp_iteration(figure, jobs, record):
    record(**jobs.told(figure))
