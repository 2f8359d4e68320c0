"""Barriers beside MPI's and gloo's."""

import grid
from tcp_cases import Case

BARRIER = Case("barrier", "barrier")


def pytest_generate_tests(metafunc):
    grid.parametrize(metafunc, [BARRIER], backends=["barrier"], single=["barrier"])


def test_barrier(figure, jobs, record):
    record(**jobs.told(figure))
