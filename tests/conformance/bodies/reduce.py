"""What a rank does in the tests of allreduce."""

import numpy as np

from tests.calls import calls
from tests.reference import (
    assert_same_bytes,
    assert_same_fold,
    fold,
    numbers,
    sentinels,
)


def reduce(comm, caller, dtype, op, count, seed=0, in_place=False):
    contributions = [numbers(dtype, r, count, seed) for r in range(comm.size)]
    send = contributions[comm.rank].copy()
    recv = send if in_place else sentinels(dtype, count)
    if caller == "mixed":
        caller = ("python", "njit")[comm.rank % 2]
    calls(caller).allreduce(comm, send, recv, op)
    try:
        assert_same_fold(recv, fold(op, contributions), op)
        if not in_place:
            assert_same_bytes(send, contributions[comm.rank])
    except AssertionError as error:
        raise AssertionError(f"{op.name} of {count} {dtype}, in place {in_place}") from error
    return recv.tobytes()


def reduce_lengths(comm, caller, dtype, op, lengths):
    for seed, count in enumerate(lengths):
        reduce(comm, caller, dtype, op, count, seed)
        reduce(comm, caller, dtype, op, count, seed, in_place=True)


def reduce_small_sum(comm, caller):
    """Four float64, as an SDDP iteration reduces its bounds; the op is left out."""
    send = np.array([0.1, 1e16, -1.0, comm.rank + 1.0])
    recv = sentinels("f8", 4)
    calls(caller).allreduce(comm, send, recv)
    everyone = [np.array([0.1, 1e16, -1.0, r + 1.0]) for r in range(comm.size)]
    expected = everyone[0]
    for other in everyone[1:]:
        expected = expected + other
    assert_same_bytes(recv, expected)


def reduce_signed_zeros(comm, caller, op):
    """The earlier rank's zero stays, whichever it is; the first NaN met stays."""
    payloads = [0x7FF8_0000_0000_0000 + r for r in range(comm.size)]
    mine = np.zeros(3, dtype=np.float64)
    mine[0] = 0.0 if comm.rank % 2 else -0.0
    mine[1] = -0.0 if comm.rank % 2 else 0.0
    mine.view(np.uint64)[2] = payloads[comm.rank]
    recv = sentinels("f8", 3)
    calls(caller).allreduce(comm, mine, recv, op)
    first = np.array([-0.0, 0.0, 0.0])
    first.view(np.uint64)[2] = payloads[0]
    assert_same_bytes(recv, first)


def reduce_same_bits(comm, caller, dtype, op, count):
    """The bits do not depend on chunks: one long message equals many short ones."""
    mine = numbers(dtype, comm.rank, count)
    whole, parts = sentinels(dtype, count), sentinels(dtype, count)
    calls(caller).allreduce(comm, mine, whole, op)
    for start in range(0, count, 97):
        piece = parts[start : start + 97]
        calls(caller).allreduce(comm, mine[start : start + 97], piece, op)
    assert_same_fold(parts, whole, op)
    return whole.tobytes()


def reduce_shapes(comm, caller, op):
    mine = numbers("f8", comm.rank, 12).reshape(3, 4)
    recv = sentinels("f8", (3, 4))
    calls(caller).allreduce(comm, mine, recv, op)
    everyone = [numbers("f8", r, 12).reshape(3, 4) for r in range(comm.size)]
    assert_same_fold(recv, fold(op, everyone), op)
    single, result = np.array(2.0 + comm.rank), np.array(-1.0)
    calls(caller).allreduce(comm, single, result, op)
    assert result == fold(op, [np.array(2.0 + r) for r in range(comm.size)])


def reduce_read_only_send(comm, caller, op):
    mine = numbers("f8", comm.rank, 12)
    mine.flags.writeable = False
    recv = sentinels("f8", 12)
    calls(caller).allreduce(comm, mine, recv, op)
    assert_same_fold(recv, fold(op, [numbers("f8", r, 12) for r in range(comm.size)]), op)


def reduce_alias_dtype(comm, caller, op):
    """``long long`` is int64 by another number."""
    mine = numbers("i8", comm.rank, 20).astype(np.longlong)
    recv = np.zeros(20, dtype=np.int64)
    calls(caller).allreduce(comm, mine, recv, op)
    everyone = [numbers("i8", r, 20) for r in range(comm.size)]
    assert_same_bytes(recv, fold(op, everyone))
