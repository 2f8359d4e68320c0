"""broadcast: every rank gets the root's bytes, whichever rank is the root."""

from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import EVERY, QUICK, Case, Together
from cobre_comm.testing.cases.each_way import each_way
from cobre_comm.testing.cases.reference import (
    PLAIN,
    PYTHON_ONLY,
    STRUCTURED,
    among_sentinels,
    assert_same_bytes,
    block,
    sentinels,
)


def cast(comm, caller, dtype, shape, root, seed=0):
    expected = block(dtype, root, shape, seed)
    buffer = among_sentinels(expected) if comm.rank == root else sentinels(dtype, shape)
    calls(caller, comm.rank).broadcast(comm, buffer, root)
    assert_same_bytes(buffer, expected)


def cast_from_every_rank(comm, caller, dtype, shape):
    for root in range(comm.size):
        cast(comm, caller, dtype, shape, root, seed=root)


def cast_lengths(comm, caller, dtype, lengths):
    for number, length in enumerate(lengths):
        cast(comm, caller, dtype, length, (number + 1) % comm.size, seed=number)


def cast_each_way(comm, caller, lengths):
    for _ in each_way(comm):
        cast_lengths(comm, caller, "u1", lengths)


def cast_odd_addresses(comm, caller, count):
    for offset in (1, 3, 7):
        expected = sentinels("u1", count + 8)
        expected[offset : offset + count] = block("u1", 0, count, offset)
        whole = among_sentinels(expected) if comm.rank == 0 else sentinels("u1", count + 8)
        calls(caller, comm.rank).broadcast(comm, whole[offset : offset + count], 0)
        assert_same_bytes(whole, expected)


def cast_read_only_on_root(comm, caller):
    expected = block("f8", 7, 30)
    buffer = expected.copy() if comm.rank == 0 else sentinels("f8", 30)
    buffer.flags.writeable = comm.rank != 0
    calls(caller, comm.rank).broadcast(comm, buffer, 0)
    assert_same_bytes(buffer, expected)


def cast_default_root(comm, caller):
    expected = block("i8", 3, 6)
    buffer = expected.copy() if comm.rank == 0 else sentinels("i8", 6)
    calls(caller, comm.rank).broadcast(comm, buffer)
    assert_same_bytes(buffer, expected)


SMALLEST = ("smallest",)
CASES = [
    Case(
        "from_every_rank", cast_from_every_rank,
        {"dtype": ["f8"], "shape": [Together([0, 1, 12, 13, (3, 4), (), 10_000])]}, check=QUICK,
    ),
    Case(
        "same_call_with_other_data", cast,
        {
            "dtype": ["f8"], "shape": [Together([4, 12, 1000])], "root": [0],
            "seed": [Together(range(4))],
        },
    ),
    Case(
        "odd_addresses", cast_odd_addresses, {"count": [Together([5, 1500, 9001])]},
        buffers=("small",),
    ),
    Case(
        "twenty_mebibytes", cast, {"dtype": ["u1"], "shape": [20 * 2**20], "root": [0]},
        callers=("python",), where="typed",
    ),
    Case("each_way", cast_each_way, {"lengths": [[2**16 - 1, 2**16, 2**16 + 4097, 200_003]]}),
    Case(
        "many_chunks", cast_lengths, {"dtype": ["f8"], "lengths": [[159, 160, 161, 320, 3001]]},
        callers=EVERY, buffers=SMALLEST, check=QUICK,
    ),
    Case(
        "structured_in_many_chunks", cast_from_every_rank,
        {"dtype": [STRUCTURED], "shape": [500]}, callers=("python",), buffers=SMALLEST,
    ),
    Case("dtypes", cast_lengths, {"dtype": PLAIN, "lengths": [[0, 1, 40, 3000]]}, callers=EVERY),
    Case(
        "dtypes_of_python", cast_lengths, {"dtype": PYTHON_ONLY, "lengths": [[0, 1, 40, 3000]]},
        callers=("python",),
    ),
    Case("read_only_on_the_root", cast_read_only_on_root),
    Case("root_left_out", cast_default_root, callers=EVERY),
]  # fmt: skip
