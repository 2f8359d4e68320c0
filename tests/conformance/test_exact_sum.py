import math

import pytest

from cobre_comm.testing.conformance import ExactSumTests
from cobre_comm.testing.conformance.bodies import exact
from tests.grid import OUR_GRID


class TestExactSum(ExactSumTests):
    grid = OUR_GRID


@pytest.mark.parametrize("backend", ["shm", "tcp"])
@pytest.mark.parametrize("caller", ["python", "njit"])
def test_a_million_values_over_five_ranks(pools, backend, caller):
    for seed in (9, 10):
        right = math.fsum(exact.everything("wild", seed, 1_000_000))
        results = pools.get(backend, 5).run(exact.sum_split, caller, "wild", 1_000_000, seed)
        assert set(results) == {right.hex()}
