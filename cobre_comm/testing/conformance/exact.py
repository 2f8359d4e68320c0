"""Tests of exact_sum."""

import math

import pytest

from cobre_comm.errors import CollectiveFailed
from cobre_comm.testing.conformance.bodies import exact
from cobre_comm.testing.conformance.suite import Suite, needs

MILLION = 1_000_000


class ExactSumTests(Suite):
    """The correctly rounded sum, however the values are split over the ranks."""

    @pytest.mark.parametrize("seed", [5, 6, pytest.param(8, marks=pytest.mark.slow)])
    def test_a_million_values_of_all_magnitudes(self, pool, caller, seed):
        right = math.fsum(exact.everything("wild", seed, MILLION))
        results = pool.run(exact.sum_split, caller, "wild", MILLION, seed)
        assert set(results) == {right.hex()}

    @pytest.mark.parametrize("dtype", ["f8", "f4"])
    def test_every_kind_in_every_split(self, pool, caller, dtype):
        pool.run(exact.sum_kinds, caller, 200, range(4), dtype)

    @pytest.mark.parametrize("count", [8191, 8192, 30_001])
    def test_few_and_many(self, pool, caller, count):
        kinds = [(kind, "f8") for kind in ("similar", "subnormal", "zeros", "cancelling")]
        for kind, dtype in [*kinds, ("similar", "f4"), ("zeros", "f4")]:
            for seed in (0, 2):
                results = pool.run(exact.sum_split, caller, kind, count, seed, dtype)
                values = exact.everything(kind, seed, count).astype(dtype)
                assert set(results) == {math.fsum(values).hex()}, kind

    @needs("njit")
    def test_python_meets_njit(self, pools, backend):
        pools.get(backend, 3).run(exact.sum_kinds, "mixed", 50, range(2))

    def test_shapes_and_dtypes(self, pool, caller):
        pool.run(exact.sum_shapes, caller)

    def test_wrong_values(self, argument_pool, caller):
        argument_pool.run(exact.wrong_values, caller)

    @needs("disagreement")
    def test_an_allreduce_of_the_same_length_is_not_a_sum(self, pools, backend, caller):
        env = self.grid.timeout_of(10)
        errors = pools.get(backend, 3).run(exact.disagree, caller, env=env, fresh=True)
        assert all(isinstance(error, CollectiveFailed) for error in errors), errors
        assert errors[0].operation == "exact_sum"
        assert all("rank 0 called exact_sum" in str(error) for error in errors), errors
