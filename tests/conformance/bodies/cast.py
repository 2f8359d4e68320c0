"""What a rank does in the tests of broadcast."""

from tests.calls import calls
from tests.reference import assert_same_bytes, block, sentinels


def cast(comm, caller, dtype, shape, root, seed=0):
    expected = block(dtype, root, shape, seed)
    buffer = expected.copy() if comm.rank == root else sentinels(dtype, shape)
    if caller == "mixed":
        caller = ("python", "njit")[comm.rank % 2]
    calls(caller).broadcast(comm, buffer, root)
    assert_same_bytes(buffer, expected)


def cast_from_every_rank(comm, caller, dtype, shape):
    for root in range(comm.size):
        cast(comm, caller, dtype, shape, root, seed=root)


def cast_lengths(comm, caller, dtype, lengths):
    for number, length in enumerate(lengths):
        cast(comm, caller, dtype, length, (number + 1) % comm.size, seed=number)


def cast_read_only_on_root(comm, caller):
    expected = block("f8", 7, 30)
    buffer = expected.copy() if comm.rank == 0 else sentinels("f8", 30)
    buffer.flags.writeable = comm.rank != 0
    calls(caller).broadcast(comm, buffer, 0)
    assert_same_bytes(buffer, expected)


def cast_default_root(comm, caller):
    expected = block("i8", 3, 6)
    buffer = expected.copy() if comm.rank == 0 else sentinels("i8", 6)
    calls(caller).broadcast(comm, buffer)
    assert_same_bytes(buffer, expected)
