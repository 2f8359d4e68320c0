import pytest

from cobre_comm import ReduceOp
from tests.conformance.bodies import reduce
from tests.grid import EACH_ONCE, MANY_CHUNKS
from tests.reference import COMPLEX, FLOATS, INTEGERS, OPS

# 96 bytes travel with the flag; 16 KiB is where stripes begin; the last one is several chunks.
LENGTHS = [1, 2, 3, 12, 13, 17, 1000, 2048, 2049]
CASES = [(dtype, op) for dtype in [*INTEGERS, *FLOATS] for op in OPS]
CASES += [(dtype, ReduceOp.SUM) for dtype in COMPLEX]
every_op = pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
every_case = pytest.mark.parametrize(("dtype", "op"), CASES, ids=lambda x: getattr(x, "name", x))


def test_sum_of_four_with_op_left_out(pool, caller):
    pool.run(reduce.reduce_small_sum, caller)


@every_op
def test_lengths(pool, caller, op):
    pool.run(reduce.reduce_lengths, caller, "f8", op, LENGTHS)


@every_op
def test_long(pool, caller, op):
    results = pool.run(reduce.reduce, caller, "f8", op, 100_003)
    assert len(set(results)) == 1


@every_op
def test_long_in_many_small_chunks(pool, caller, op):
    lengths = [159, 160, 161, 2049, 6001]
    pool.run(reduce.reduce_lengths, caller, "f8", op, lengths, env=MANY_CHUNKS)


@every_case
def test_dtypes_in_python(pool, dtype, op):
    pool.run(reduce.reduce_lengths, "python", dtype, op, [1, 13, 6001])


@every_case
def test_dtypes_in_small_chunks(pools, backend, dtype, op):
    lengths = [7, 997, 9001]
    pools.get(backend, 4).run(reduce.reduce_lengths, "python", dtype, op, lengths, env=MANY_CHUNKS)


@pytest.mark.parametrize("backend_and_size", EACH_ONCE)
@every_case
def test_dtypes_in_njit(pools, backend_and_size, dtype, op):
    pools.get(*backend_and_size).run(reduce.reduce_lengths, "njit", dtype, op, [1, 13, 2500])


@pytest.mark.parametrize("dtype", [*FLOATS, "i8"])
@every_op
def test_python_meets_njit(pools, backend, dtype, op):
    pools.get(backend, 4).run(reduce.reduce_lengths, "mixed", dtype, op, [3, 40, 5000])


@pytest.mark.parametrize("op", [ReduceOp.MIN, ReduceOp.MAX], ids=lambda op: op.name)
def test_earlier_zero_and_first_nan_stay(pool, caller, op):
    pool.run(reduce.reduce_signed_zeros, caller, op)


@pytest.mark.parametrize("dtype", FLOATS)
@every_op
def test_bits_do_not_depend_on_message_size(pool, dtype, op):
    for env in ({}, MANY_CHUNKS):
        results = pool.run(reduce.reduce_same_bits, "python", dtype, op, 5000, env=env)
        assert len(set(results)) == 1


@every_op
def test_two_and_no_dimensions(pool, caller, op):
    pool.run(reduce.reduce_shapes, caller, op)


@every_op
def test_send_may_be_read_only(pool, caller, op):
    pool.run(reduce.reduce_read_only_send, caller, op)


@every_op
def test_long_long_is_int64(pool, op):
    pool.run(reduce.reduce_alias_dtype, "python", op)
