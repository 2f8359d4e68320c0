"""What a rank does in the tests of broadcast."""

from cobre_comm.testing.conformance.calls import calls
from cobre_comm.testing.conformance.reference import (
    among_sentinels,
    assert_same_bytes,
    block,
    sentinels,
)


def cast(comm, caller, dtype, shape, root, seed=0):
    expected = block(dtype, root, shape, seed)
    buffer = among_sentinels(expected) if comm.rank == root else sentinels(dtype, shape)
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


def cast_again(comm, caller, count):
    """The same call in a row, each time with other data."""
    for seed in range(4):
        cast(comm, caller, "f8", count, 0, seed)


def cast_odd_addresses(comm, caller, count):
    for offset in (1, 3, 7):
        expected = sentinels("u1", count + 8)
        expected[offset : offset + count] = block("u1", 0, count, offset)
        whole = among_sentinels(expected) if comm.rank == 0 else sentinels("u1", count + 8)
        calls(caller).broadcast(comm, whole[offset : offset + count], 0)
        assert_same_bytes(whole, expected)


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
