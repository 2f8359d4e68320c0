"""The fold kernel alone, against the reference, bit for bit."""

import numpy as np
import pytest
from cobre_kernels.collective import dtypes
from cobre_kernels.collective.fold import MAX, MIN, SUM, Fold, fold_kernel
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from cobre_comm import ReduceOp
from cobre_comm.testing.cases.reference import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    OPS,
    assert_same_fold,
    fold,
    numbers,
)

CASES = [(dtype, op) for dtype in [*INTEGERS, *FLOATS] for op in OPS]
CASES += [(dtype, ReduceOp.SUM) for dtype in COMPLEX]
every_case = pytest.mark.parametrize(("dtype", "op"), CASES, ids=lambda x: getattr(x, "name", x))


def check(op, contributions):
    accumulator = contributions[0].copy()
    code = dtypes.CODES[accumulator.dtype]
    for x in contributions[1:]:
        before = x.copy()
        call = Fold(code, int(op), accumulator.ctypes.data, x.ctypes.data, x.size)
        assert fold_kernel.call(0, call) == 0
        assert x.tobytes() == before.tobytes()
    assert_same_fold(accumulator, fold(op, contributions), op)


@every_case
@pytest.mark.parametrize("count", [0, 1, 2, 3, 15, 16, 17, 1000])
def test_drawn_numbers(dtype, op, count):
    check(op, [numbers(dtype, rank, count) for rank in range(5)])


@every_case
@settings(max_examples=15, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_any_numbers(dtype, op, data):
    count = data.draw(st.integers(0, 40))
    arrays = npst.arrays(np.dtype(dtype), count)
    check(op, data.draw(st.lists(arrays, min_size=1, max_size=5)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", [ReduceOp.MIN, ReduceOp.MAX])
def test_every_pair_of_special_values(dtype, op):
    info = np.finfo(dtype)
    tiny = info.smallest_subnormal
    special = np.array(
        [0.0, -0.0, np.nan, np.inf, -np.inf, tiny, -tiny, info.tiny, info.max, -info.max, 1.0],
        dtype=dtype,
    )
    check(op, [np.repeat(special, special.size), np.tile(special, special.size)])


@pytest.mark.parametrize("op", [ReduceOp.MIN, ReduceOp.MAX])
def test_first_nan_stays_with_its_payload(op):
    nans = np.array([0x7FF8_0000_0000_0001, 0x7FF8_0000_0000_0002], dtype=np.uint64).view("f8")
    check(op, [nans[:1].copy(), nans[1:].copy()])
    check(op, [nans[1:].copy(), np.array([1.0]), nans[:1].copy()])
    check(op, [np.array([1.0]), nans[1:].copy(), nans[:1].copy()])


def test_sum_is_not_reassociated():
    values = [np.array([x]) for x in (1e16, 1.0, 1.0, -1e16)]
    check(ReduceOp.SUM, values)
    assert fold(ReduceOp.SUM, values)[0] == 0.0, "another order would give 2"


def test_subnormals_are_not_flushed():
    tiny = np.finfo("f8").smallest_subnormal
    check(ReduceOp.SUM, [np.array([tiny]), np.array([tiny])])
    assert fold(ReduceOp.SUM, [np.array([tiny]), np.array([tiny])])[0] == 2 * tiny


def test_operations_have_the_numbers_of_reduce_op():
    assert [int(op) for op in ReduceOp] == [SUM, MIN, MAX]
