"""Gathering on all ranks beside MPI and gloo; sizes are those of one rank's part.

The large ones are measured beside plain copies too: each rank fills its receiving buffers from its
own part, in its turn and with as many buffers.
"""

import grid

ESSENTIALS = grid.rows("allgatherv", "allgatherv", [32, 4096, 200_000, 12_900_000])
MORE = [c for c in grid.rows("allgatherv", "allgatherv", grid.SIZES) if c not in ESSENTIALS]
LARGE = ["allgatherv 200 kB", "allgatherv 12.9 MB"]


def pytest_generate_tests(metafunc):
    grid.parametrize(metafunc, ESSENTIALS, MORE, backends=["allgatherv 32 B", *LARGE], memcpy=LARGE)


def test_allgatherv(figure, jobs, record):
    record(**jobs.told(figure))
