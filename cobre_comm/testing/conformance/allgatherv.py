"""Tests of allgatherv."""

import pytest

from cobre_comm.testing.conformance.bodies import gather
from cobre_comm.testing.conformance.reference import PLAIN, PYTHON_ONLY, STRUCTURED
from cobre_comm.testing.conformance.suite import Suite, needs


class AllgathervTests(Suite):
    """Every block where its displacement says, for every layout, length and dtype."""

    @pytest.mark.parametrize("name", list(gather.layouts(3)))
    def test_layouts(self, pool, caller, name):
        pool.run(gather.gather_layout, caller, name)

    def test_many_chunks(self, pool, caller):
        pool.run(gather.gather_equal, caller, "f8", 2000, env=self.grid.smallest_buffers)

    def test_some_ranks_send_many_chunks_and_others_few(self, pool, caller):
        counts = [(0, 5000, 3, 171, 170, 1)[r % 6] for r in range(pool.size)]
        displs = [sum(counts[:r]) for r in range(pool.size)]
        pool.run(
            gather.gather, caller, "f8", counts, displs, sum(counts), env=self.grid.smallest_buffers
        )

    def test_every_layout_in_many_chunks_of_large_elements(self, pool):
        pool.run(gather.gather_every_layout, "python", STRUCTURED, env=self.grid.smallest_buffers)

    def test_element_larger_than_a_chunk(self, pool):
        pool.run(gather.gather_layout, "python", "uneven", "V5000", env=self.grid.smallest_buffers)

    @pytest.mark.parametrize("count", [11, 12, 13, 170, 171, 341])
    def test_edges_of_inline_and_chunk(self, pool, caller, count):
        pool.run(gather.gather_equal, caller, "f8", count, env=self.grid.smallest_buffers)

    @pytest.mark.parametrize("count", [4, 12, 1000])
    def test_same_call_with_other_data(self, pool, caller, count):
        pool.run(gather.gather_again, caller, count)

    @pytest.mark.parametrize("count", [5, 1500, 9001])
    def test_odd_addresses(self, pool, caller, count):
        pool.run(gather.gather_odd_addresses, caller, count, env=self.grid.small_buffers)

    def test_twenty_mebibytes(self, typed_pool):
        count = 20 * 2**20 // typed_pool.size
        typed_pool.run(gather.gather_equal, "python", "u1", count)

    def test_late_rank_that_sends_nothing(self, pool, caller):
        times = pool.run(gather.gather_from_late_and_silent, caller, pool.size - 1, 0.15)
        last_entry = max(entered for entered, _ in times)
        assert all(left >= last_entry for _, left in times)

    def test_hundred_thousand_each(self, pool, caller):
        pool.run(gather.gather_equal, caller, "f8", 100_000)

    @pytest.mark.parametrize("dtype", [*PLAIN, *PYTHON_ONLY], ids=str)
    def test_dtypes_in_python(self, pool, dtype):
        pool.run(gather.gather_every_layout, "python", dtype)

    @needs("njit")
    @pytest.mark.parametrize("dtype", PLAIN, ids=str)
    def test_dtypes_in_njit(self, typed_pool, dtype):
        typed_pool.run(gather.gather_layout, "njit", "uneven", dtype)

    @pytest.mark.parametrize("dtype", PLAIN, ids=str)
    @needs("njit")
    def test_python_meets_njit(self, pools, backend, dtype):
        pools.get(backend, 3).run(gather.gather_layout, "mixed", "uneven", dtype)

    @pytest.mark.parametrize("count", [0, 1, 50, 5000])
    def test_own_block_in_place(self, pool, caller, count):
        pool.run(gather.gather_in_place, caller, count, env=self.grid.smallest_buffers)

    @pytest.mark.parametrize("tables", ["list", "tuple", "int64", "int32", "uint64", "strided"])
    def test_tables_in_python(self, pool, tables):
        pool.run(gather.gather_layout, "python", "gaps", "f8", tables)

    @needs("njit")
    @pytest.mark.parametrize(
        "tables", ["tuple", "int64", "int32", "uint64", "strided", "typed list"]
    )
    def test_tables_in_njit(self, typed_pool, tables):
        typed_pool.run(gather.gather_layout, "njit", "gaps", "f8", tables)

    def test_two_and_no_dimensions(self, pool, caller):
        pool.run(gather.gather_shapes, caller)

    def test_send_may_be_read_only(self, pool, caller):
        pool.run(gather.gather_read_only_send, caller)
