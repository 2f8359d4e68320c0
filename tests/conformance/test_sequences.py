import pytest

from tests.conformance.bodies import sync

MANY_CHUNKS = {"COBRE_SHM_BUFFER_BYTES": "4096"}
callers = pytest.mark.parametrize("caller", ["python", "njit", "either", "each its own"])


def test_four_in_a_row(pool, caller):
    pool.run(sync.four_in_a_row, caller)


@callers
def test_random_operations(pool, caller):
    pool.run(sync.random_operations, caller, 20261, 150, 400, env=MANY_CHUNKS)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@callers
def test_ten_thousand_random_operations(pool, caller):
    pool.run(sync.random_operations, caller, 777, 10_000, 3000, env=MANY_CHUNKS, timeout_s=1000)
