import itertools

import pytest

from cobre_comm.testing import leaders, node_of_ranks
from tests.conformance.bodies import regions
from tests.reference import STRUCTURED

DTYPES = ["f8", "i1", "c16", "?", STRUCTURED, "M8[s]", "S5"]
ORDERS = list(itertools.permutations(["close region", "close comm", "drop"]))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_populate_on_leader(pool, dtype):
    pool.run(regions.populate_on_leader, dtype, 1000)


@pytest.mark.parametrize("count", [0, 1, 511, 512, 513, 200_000])
def test_lengths(pool, count):
    pool.run(regions.populate_on_leader, "f8", count)


@pytest.mark.parametrize("count", [0, 5, 10_000])
def test_populate_by_block(pool, count):
    pool.run(regions.populate_by_block, count)


def test_memory_is_shared(pool):
    pool.run(regions.one_copy_in_memory)


def test_block_bounds(pool):
    pool.run(regions.block_bounds)


def test_one_leader(pool):
    assert pool.run(regions.leader) == leaders(pool.backend, pool.size)


def test_split_local_is_independent(pool, caller):
    pool.run(regions.split, caller, node_of_ranks(pool.backend, pool.size))


def test_split_local_outlives_its_parent(pool):
    pool.run(regions.split_outlives_parent, fresh=True)


@pytest.mark.parametrize("order", ORDERS, ids=", ".join)
def test_views_outlive_everything(pool, order):
    order = order[: order.index("drop") + 1]
    pool.run(regions.views_outlive_everything, order)


def test_two_hundred_leave_nothing(pool):
    pool.run(regions.many_regions, 200)


@pytest.mark.slow
def test_a_thousand_leave_nothing(thorough_pool):
    thorough_pool.run(regions.many_regions, 1000, timeout_s=200)


def test_communicators_leave_nothing(pool):
    pool.run(regions.many_communicators, 20)


@pytest.mark.parametrize("count", [2**45, 2**58, 2**62])
def test_too_large(pool, caller, count):
    pool.run(regions.too_large, caller, count)


def test_bad_arguments(pool):
    pool.run(regions.bad_region_arguments)


def test_closed_communicator(pool):
    pool.run(regions.closed_communicator)


def test_in_compiled_code(pool):
    pool.run(regions.in_compiled_code)


def test_compiled_write_is_refused(pool):
    pool.run(regions.compiled_write_is_refused)


def test_compiled_code_keeps_reference_counts(pool):
    pool.run(regions.compiled_references, 100)
