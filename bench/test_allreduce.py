"""Sums of float64 beside MPI's and gloo's. Ours are folded in rank order, theirs need not be."""

import grid

ESSENTIALS = grid.rows("allreduce", "sum", [8, 32, 4096, 32768, 524_288, 8 * 2**20])
MORE = [case for case in grid.rows("allreduce", "sum", grid.SIZES) if case not in ESSENTIALS]


def pytest_generate_tests(metafunc):
    grid.parametrize(
        metafunc,
        ESSENTIALS,
        MORE,
        backends=["allreduce 32 B", "allreduce 512 KiB"],
        single=["allreduce 32 B"],
    )


def test_allreduce(figure, jobs, record):
    record(**jobs.told(figure))
