"""Tests of shared regions and split_local."""

import itertools

import pytest

from cobre_comm.testing.conformance.bodies import regions
from cobre_comm.testing.conformance.reference import STRUCTURED
from cobre_comm.testing.conformance.suite import Suite, needs

DTYPES = ["f8", "i1", "c16", "?", STRUCTURED, "M8[s]", "S5"]
ORDERS = list(itertools.permutations(["close region", "close comm", "drop"]))


class RegionTests(Suite):
    """Shared regions and split_local."""

    @needs("regions")
    @pytest.mark.parametrize("dtype", DTYPES, ids=str)
    def test_populate_on_leader(self, pool, dtype):
        pool.run(regions.populate_on_leader, dtype, 1000)

    @needs("regions")
    @pytest.mark.parametrize("count", [0, 1, 511, 512, 513, 200_000])
    def test_lengths(self, pool, count):
        pool.run(regions.populate_on_leader, "f8", count)

    @needs("regions", "split")
    @pytest.mark.parametrize("count", [0, 5, 10_000])
    def test_populate_by_block(self, pool, count):
        pool.run(regions.populate_by_block, count)

    @needs("regions", "split")
    def test_memory_is_shared(self, pool):
        pool.run(regions.one_copy_in_memory)

    @needs("regions")
    def test_late_leader(self, pool, caller):
        pool.run(regions.late_leader, caller, 0.15)

    @needs("regions")
    def test_block_bounds(self, pool):
        pool.run(regions.block_bounds)

    @needs("regions")
    def test_one_leader(self, pool):
        assert pool.run(regions.leader) == self.grid.leaders(pool.backend, pool.size)

    @needs("split")
    def test_split_local_is_independent(self, pool, caller):
        pool.run(regions.split, caller, self.grid.nodes(pool.backend, pool.size))

    @needs("regions", "split")
    def test_split_local_outlives_its_parent(self, pool):
        pool.run(regions.split_outlives_parent, fresh=True)

    @needs("regions", "split")
    @pytest.mark.parametrize("order", ORDERS, ids=", ".join)
    def test_views_outlive_everything(self, pool, order):
        order = order[: order.index("drop") + 1]
        pool.run(regions.views_outlive_everything, order)

    @needs("regions")
    def test_two_hundred_leave_nothing(self, pool):
        pool.run(regions.many_regions, 200)

    @needs("regions")
    @pytest.mark.slow
    def test_a_thousand_leave_nothing(self, thorough_pool):
        thorough_pool.run(regions.many_regions, 1000, timeout_s=200)

    @needs("split")
    def test_communicators_leave_nothing(self, pool):
        pool.run(regions.many_communicators, 20)

    @needs("regions")
    @pytest.mark.parametrize("count", [2**45, 2**58, 2**62])
    def test_too_large(self, pool, caller, count):
        pool.run(regions.too_large, caller, count)

    @needs("regions")
    def test_bad_arguments(self, pool):
        pool.run(regions.bad_region_arguments)

    @needs("regions", "split")
    def test_closed_communicator(self, pool):
        pool.run(regions.closed_communicator)

    @needs("regions", "njit")
    def test_in_compiled_code(self, pool):
        pool.run(regions.in_compiled_code)

    @needs("regions", "njit")
    def test_compiled_write_is_refused(self, pool):
        pool.run(regions.compiled_write_is_refused)

    @needs("regions", "njit")
    def test_compiled_code_keeps_reference_counts(self, pool):
        pool.run(regions.compiled_references, 100)
