"""Broadcasts from rank 0 beside MPI and gloo.

Ours returns when all ranks have shown the same call; MPI's root returns when its bytes are on their
way, so a loop of small ones measures throughput there.
"""

import grid

ESSENTIALS = grid.rows("broadcast", "broadcast", [10_000, 8 * 2**20])
MORE = [c for c in grid.rows("broadcast", "broadcast", grid.SIZES) if c not in ESSENTIALS]


def pytest_generate_tests(metafunc):
    grid.parametrize(
        metafunc, ESSENTIALS, MORE, backends=["broadcast 10 kB"], memcpy=["broadcast 8 MiB"]
    )


def test_broadcast(figure, jobs, record):
    record(**jobs.told(figure))
