"""Tests of allreduce."""

import pytest

from cobre_comm import ReduceOp
from cobre_comm.testing.conformance.bodies import reduce
from cobre_comm.testing.conformance.reference import COMPLEX, FLOATS, INTEGERS, OPS
from cobre_comm.testing.conformance.suite import Suite, needs

# 96 bytes travel with the flag; 16 KiB is where stripes begin; the last one is several chunks.
LENGTHS = [1, 2, 3, 12, 13, 17, 1000, 2048, 2049]
CASES = [(dtype, op) for dtype in [*INTEGERS, *FLOATS] for op in OPS]
CASES += [(dtype, ReduceOp.SUM) for dtype in COMPLEX]
every_op = pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
every_case = pytest.mark.parametrize(("dtype", "op"), CASES, ids=lambda x: getattr(x, "name", x))


class AllreduceTests(Suite):
    """The fold in rank order, bit for bit, for every dtype, operation and length."""

    def test_sum_of_four_with_op_left_out(self, pool, caller):
        pool.run(reduce.reduce_small_sum, caller)

    @every_op
    def test_lengths(self, pool, caller, op):
        pool.run(reduce.reduce_lengths, caller, "f8", op, LENGTHS)

    @pytest.mark.parametrize("count", [4, 12, 1000])
    def test_same_call_with_other_data(self, pool, caller, count):
        pool.run(reduce.reduce_again, caller, ReduceOp.SUM, count)

    @pytest.mark.parametrize("dtype", FLOATS)
    @pytest.mark.parametrize("count", [1, 5, 2051])
    def test_odd_addresses(self, pool, caller, dtype, count):
        pool.run(reduce.reduce_odd_addresses, caller, dtype, ReduceOp.SUM, count)

    def test_twenty_mebibytes(self, typed_pool):
        typed_pool.run(reduce.reduce, "python", "f4", ReduceOp.MAX, 5 * 2**20)

    @every_op
    def test_long(self, pool, caller, op):
        results = pool.run(reduce.reduce, caller, "f8", op, 100_003)
        assert len(set(results)) == 1

    @every_op
    def test_long_in_many_small_chunks(self, pool, caller, op):
        lengths = [159, 160, 161, 2049, 6001]
        pool.run(reduce.reduce_lengths, caller, "f8", op, lengths, env=self.grid.smallest_buffers)

    @every_case
    def test_dtypes_in_python(self, pool, dtype, op):
        pool.run(reduce.reduce_lengths, "python", dtype, op, [1, 13, 6001])

    @every_case
    def test_dtypes_in_small_chunks(self, pools, backend, dtype, op):
        lengths = [7, 997, 9001]
        pools.get(backend, 4).run(
            reduce.reduce_lengths, "python", dtype, op, lengths, env=self.grid.smallest_buffers
        )

    @needs("njit")
    @every_case
    def test_dtypes_in_njit(self, typed_pool, dtype, op):
        typed_pool.run(reduce.reduce_lengths, "njit", dtype, op, [1, 13, 2500])

    @pytest.mark.parametrize("dtype", [*FLOATS, "i8"])
    @every_op
    @needs("njit")
    def test_python_meets_njit(self, pools, backend, dtype, op):
        pools.get(backend, 4).run(reduce.reduce_lengths, "mixed", dtype, op, [3, 40, 5000])

    @pytest.mark.parametrize("op", [ReduceOp.MIN, ReduceOp.MAX], ids=lambda op: op.name)
    def test_earlier_zero_and_first_nan_stay(self, pool, caller, op):
        pool.run(reduce.reduce_signed_zeros, caller, op)

    @every_op
    def test_special_numbers(self, pool, op):
        pool.run(reduce.reduce_specials, "python", [*INTEGERS, *FLOATS], op)

    @needs("njit")
    @every_op
    def test_special_numbers_in_njit(self, typed_pool, op):
        typed_pool.run(reduce.reduce_specials, "njit", [*INTEGERS, *FLOATS], op)

    @pytest.mark.parametrize("dtype", FLOATS)
    @every_op
    def test_bits_do_not_depend_on_message_size(self, pool, dtype, op):
        for env in ({}, self.grid.smallest_buffers):
            results = pool.run(reduce.reduce_same_bits, "python", dtype, op, 5000, env=env)
            assert len(set(results)) == 1

    @every_op
    def test_two_and_no_dimensions(self, pool, caller, op):
        pool.run(reduce.reduce_shapes, caller, op)

    @every_op
    def test_send_may_be_read_only(self, pool, caller, op):
        pool.run(reduce.reduce_read_only_send, caller, op)

    @every_op
    def test_long_long_is_int64(self, pool, op):
        pool.run(reduce.reduce_alias_dtype, "python", op)
