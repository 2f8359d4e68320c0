import pytest

from tests.conformance.bodies import sync
from tests.grid import SMALL_BUFFERS

callers = pytest.mark.parametrize("caller", ["python", "njit", "either", "each its own"])


def test_four_in_a_row(pool, caller):
    pool.run(sync.four_in_a_row, caller)


@callers
def test_random_operations(pool, caller):
    pool.run(sync.random_operations, caller, 20261, 150, 400, env=SMALL_BUFFERS)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@callers
def test_ten_thousand_random_operations(thorough_pool, caller):
    thorough_pool.run(
        sync.random_operations, caller, 777, 10_000, 3000, env=SMALL_BUFFERS, timeout_s=1000
    )
