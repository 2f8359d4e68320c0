"""allreduce: the fold in rank order, bit for bit, for every dtype, operation and length."""

import math

import numpy as np

from cobre_comm import ReduceOp
from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import EVERY, QUICK, Case, Together
from cobre_comm.testing.cases.reference import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    among_sentinels,
    assert_same_bytes,
    assert_same_fold,
    fold,
    numbers,
    ops_of,
    sentinels,
)


def reduce(comm, caller, dtype, op, shape, seed=0):
    """Reduce into another array; return the bytes of the result."""
    contributions = _contributions(comm.size, dtype, shape, seed)
    send, recv = among_sentinels(contributions[comm.rank]), sentinels(dtype, shape)
    _reduce(comm, caller, op, send, recv, contributions)
    assert_same_bytes(send, contributions[comm.rank])
    return recv.tobytes()


def reduce_in_place(comm, caller, dtype, op, shape, seed=0):
    contributions = _contributions(comm.size, dtype, shape, seed)
    both = among_sentinels(contributions[comm.rank])
    _reduce(comm, caller, op, both, both, contributions)


def _contributions(size, dtype, shape, seed):
    count = math.prod(shape) if isinstance(shape, tuple) else shape
    return [numbers(dtype, r, count, seed).reshape(shape) for r in range(size)]


def _reduce(comm, caller, op, send, recv, contributions):
    calls(caller, comm.rank).allreduce(comm, send, recv, op)
    try:
        assert_same_fold(recv, fold(op, contributions), op)
    except AssertionError as error:
        where = "in place" if send is recv else "into another array"
        raise AssertionError(f"{op.name} of {recv.dtype}, {recv.shape}, {where}") from error


def reduce_repeated(comm, caller, dtype, op, count, period):
    """Reduce many numbers: a few, repeated, because it takes long to draw each number."""
    contributions = [np.resize(numbers(dtype, r, period), count) for r in range(comm.size)]
    send, recv = among_sentinels(contributions[comm.rank]), sentinels(dtype, count)
    _reduce(comm, caller, op, send, recv, contributions)


def reduce_lengths(comm, caller, dtype, op, lengths):
    for seed, count in enumerate(lengths):
        reduce(comm, caller, dtype, op, count, seed)
        reduce_in_place(comm, caller, dtype, op, count, seed)


def reduce_every_op(comm, caller, dtype, lengths):
    for op in ops_of(dtype):
        reduce_lengths(comm, caller, dtype, op, lengths)


def reduce_odd_addresses(comm, caller, dtype, op, count):
    """Send and receive at multiples of the item size that are no multiples of 16 bytes."""
    contributions = [numbers(dtype, r, count) for r in range(comm.size)]
    for offset, other in ((1, 1), (0, 1), (3, 2)):
        send = among_sentinels(np.append(numbers(dtype, 9, offset), contributions[comm.rank]))
        recv = sentinels(dtype, count + other)
        calls(caller, comm.rank).allreduce(comm, send[offset:], recv[other:], op)
        assert_same_fold(recv[other:], fold(op, contributions), op)
        assert_same_bytes(recv, among_sentinels(np.append(sentinels(dtype, other), recv[other:])))
        calls(caller, comm.rank).allreduce(comm, send[offset:], send[offset:], op)
        assert_same_fold(send[offset:], fold(op, contributions), op)


def reduce_small_sum(comm, caller):
    """Reduce four float64, as an SDDP iteration reduces its bounds; the op is left out."""
    send = np.array([0.1, 1e16, -1.0, comm.rank + 1.0])
    recv = sentinels("f8", 4)
    calls(caller, comm.rank).allreduce(comm, send, recv)
    everyone = [np.array([0.1, 1e16, -1.0, r + 1.0]) for r in range(comm.size)]
    expected = everyone[0]
    for other in everyone[1:]:
        expected = expected + other
    assert_same_bytes(recv, expected)


def reduce_signed_zeros(comm, caller, op):
    """If zeros meet, the zero of the lower rank is the result; if NaNs meet, the NaN of rank 0.

    This holds for a few numbers, all of which every rank folds, and for many numbers, of which each
    rank folds a part.
    """
    payloads = [0x7FF8_0000_0000_0000 + r for r in range(comm.size)]
    mine, first = np.zeros(3), np.array([-0.0, 0.0, 0.0])
    mine[0] = 0.0 if comm.rank % 2 else -0.0
    mine[1] = -0.0 if comm.rank % 2 else 0.0
    mine.view(np.uint64)[2] = payloads[comm.rank]
    first.view(np.uint64)[2] = payloads[0]
    for times in (1, 5000):
        recv = sentinels("f8", 3 * times)
        calls(caller, comm.rank).allreduce(comm, np.tile(mine, times), recv, op)
        assert_same_bytes(recv, np.tile(first, times))


def _specials(dtype):
    """Return the numbers of a dtype that are most likely to reveal a wrong fold."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.array([limits.min, limits.min + 1, 0, 1, 42, limits.max - 1, limits.max], dtype)
    info = np.finfo(dtype)
    ends = [info.smallest_subnormal, info.tiny, info.max, 1.0, 1.0 + info.eps, 0.0, np.inf]
    return np.array([*ends, *(-x for x in ends), np.nan], dtype)


def reduce_specials(comm, caller, dtypes, op):
    """Neighbouring ranks hold every pair of special numbers, in both orders."""
    for dtype in (each for each in dtypes if op in ops_of(each)):
        special = _specials(dtype)
        first, second = np.repeat(special, special.size), np.tile(special, special.size)
        everyone = [(first, second)[r % 2] for r in range(comm.size)]
        recv = sentinels(dtype, first.size)
        calls(caller, comm.rank).allreduce(comm, everyone[comm.rank].copy(), recv, op)
        assert_same_fold(recv, fold(op, everyone), op)


def reduce_same_bits(comm, caller, dtype, op, count):
    """The bits do not depend on chunks: one long message equals many short ones."""
    mine = numbers(dtype, comm.rank, count)
    whole, parts = sentinels(dtype, count), sentinels(dtype, count)
    calls(caller, comm.rank).allreduce(comm, mine, whole, op)
    for start in range(0, count, 97):
        piece = parts[start : start + 97]
        calls(caller, comm.rank).allreduce(comm, mine[start : start + 97], piece, op)
    assert_same_fold(parts, whole, op)
    return whole.tobytes()


def reduce_read_only_send(comm, caller, op):
    mine = numbers("f8", comm.rank, 12)
    mine.flags.writeable = False
    recv = sentinels("f8", 12)
    calls(caller, comm.rank).allreduce(comm, mine, recv, op)
    assert_same_fold(recv, fold(op, [numbers("f8", r, 12) for r in range(comm.size)]), op)


def reduce_alias_dtype(comm, caller, op):
    """Reduce ``long long``: the same as int64, but NumPy gives it another type number."""
    mine = numbers("i8", comm.rank, 20).astype(np.longlong)
    recv = np.zeros(20, dtype=np.int64)
    calls(caller, comm.rank).allreduce(comm, mine, recv, op)
    everyone = [numbers("i8", r, 20) for r in range(comm.size)]
    assert_same_bytes(recv, fold(op, everyone))


def same_on_all(ran):
    """All ranks hold the same bytes, even if a result is a NaN."""
    assert len(set(ran.values)) == 1, "ranks hold different bytes"


# Up to 96 bytes travel with the flag; stripes begin at 16 KiB; 2049 elements are several chunks.
LENGTHS = [1, 2, 3, 12, 13, 17, 1000, 2048, 2049]
CHUNKED = [159, 160, 161, 2049, 6001]
OPS = ops_of("f8")
EVERY_OP = {"dtype": ["f8"], "op": [Together(OPS)]}
CASES = [
    Case("sum_of_four_with_op_left_out", reduce_small_sum, callers=EVERY, check=QUICK),
    Case("lengths", reduce_lengths, {**EVERY_OP, "lengths": [LENGTHS]}, callers=EVERY, check=QUICK),
    Case(
        "long_in_many_small_chunks", reduce_lengths, {**EVERY_OP, "lengths": [CHUNKED]},
        buffers=("smallest",), check=QUICK,
    ),
    Case(
        "same_call_with_other_data", reduce,
        {
            "dtype": ["f8"], "op": OPS[:1], "shape": [Together([4, 12, 1000])],
            "seed": [Together(range(4))],
        },
    ),
    Case(
        "odd_addresses", reduce_odd_addresses,
        {"dtype": FLOATS, "op": OPS[:1], "count": [Together([1, 5, 2051])]},
    ),
    Case(
        "twenty_mebibytes", reduce_repeated,
        {"dtype": ["f4"], "op": [ReduceOp.MAX], "count": [5 * 2**20], "period": [99_991]},
        callers=("python",), where="typed",
    ),
    Case(
        "long", reduce,
        {"dtype": ["f8"], "op": [ReduceOp.SUM, ReduceOp.MAX, ReduceOp.PROD], "shape": [100_003]},
        expect=same_on_all,
    ),
    Case(
        "dtypes", reduce_every_op,
        {"dtype": ["?", *INTEGERS, *FLOATS, *COMPLEX], "lengths": [[1, 13, 15, 16, 17, 997, 6001]]},
        callers=EVERY, buffers=("default", "smallest"),
    ),
    Case(
        "earlier_zero_and_first_nan_stay", reduce_signed_zeros,
        {"op": [Together([ReduceOp.MIN, ReduceOp.MAX])]}, check=QUICK, everywhere=True,
    ),
    Case(
        "special_numbers", reduce_specials,
        {"dtypes": [[*INTEGERS, *FLOATS]], "op": [Together(ReduceOp)]},
    ),
    Case(
        "bits_do_not_depend_on_message_size", reduce_same_bits,
        {"dtype": FLOATS, "op": [ReduceOp.SUM, ReduceOp.MIN, ReduceOp.PROD], "count": [5000]},
        callers=("python",), buffers=("default", "smallest"), expect=same_on_all,
    ),
    Case("two_and_no_dimensions", reduce, {**EVERY_OP, "shape": [Together([(3, 4), ()])]}),
    Case("send_may_be_read_only", reduce_read_only_send, {"op": [Together(OPS)]}),
    Case(
        "long_long_is_int64", reduce_alias_dtype, {"op": [Together(ReduceOp)]},
        callers=("python",),
    ),
]  # fmt: skip
