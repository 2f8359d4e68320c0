"""allgatherv: every block where its displacement says, for every layout, length and dtype."""

import time

import numpy as np
from numba.typed import List

from cobre_comm.testing.cases.barrier import nobody_left_early
from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import EVERY, QUICK, Case, Together
from cobre_comm.testing.cases.reference import (
    PLAIN,
    PYTHON_ONLY,
    STRUCTURED,
    allgatherv,
    assert_same_bytes,
    block,
    sentinels,
)


def layouts(size):
    """Return (counts, displs, length of recv) by name."""
    uneven = [3 * r + 1 for r in range(size)]
    silent = [0 if r == size // 2 else r + 2 for r in range(size)]
    gaps = [2 + 5 * r for r in range(size)]
    odd = [(0, 1, 13, 12, 127)[r % 5] for r in range(size)]
    after = [sum(uneven[r + 1 :]) for r in range(size)]
    return {
        "uneven": (uneven, _packed(uneven), sum(uneven)),
        "one rank silent": (silent, _packed(silent), sum(silent)),
        "one element each": ([1] * size, list(range(size)), size),
        "gaps": ([3] * size, gaps, gaps[-1] + 9),
        "reversed": (uneven, after, sum(uneven)),
        "nobody sends": ([0] * size, [0] * size, 4),
        "empty recv": ([0] * size, [0] * size, 0),
        "odd": (odd, _packed(odd), sum(odd) + 1),
    }


def _packed(counts):
    return [sum(counts[:r]) for r in range(len(counts))]


def scattered(draw, counts):
    """Return displacements of blocks in a random order with small gaps, and where the last ends."""
    order = list(range(len(counts)))
    draw.shuffle(order)
    displs, end = [0] * len(counts), 0
    for rank in order:
        end += draw.randrange(3)
        displs[rank] = end
        end += counts[rank]
    return displs, end


def as_tables(kind, *lists):
    makers = {
        "list": list,
        "tuple": tuple,
        "int64": lambda x: np.array(x, dtype=np.int64),
        "int32": lambda x: np.array(x, dtype=np.int32),
        "uint64": lambda x: np.array(x, dtype=np.uint64),
        "strided": lambda x: np.repeat(np.array(x, dtype=np.int64), 2)[::2],
        "typed list": lambda x: List(x),
    }
    return [makers[kind](x) for x in lists]


def gather(comm, caller, dtype, counts, displs, length, seed=0, tables="int64"):
    sends = [block(dtype, r, counts[r], seed) for r in range(comm.size)]
    send = sends[comm.rank].copy()
    recv = sentinels(dtype, length)
    expected = allgatherv(recv, sends, displs)
    calls(caller, comm.rank).allgatherv(comm, send, recv, *as_tables(tables, counts, displs))
    assert_same_bytes(recv, expected)
    assert_same_bytes(send, sends[comm.rank])


def gather_layout(comm, caller, name, dtype="f8", tables="int64"):
    gather(comm, caller, dtype, *layouts(comm.size)[name], tables=tables)


def gather_every_layout(comm, caller, dtype="f8"):
    for seed, (counts, displs, length) in enumerate(layouts(comm.size).values()):
        gather(comm, caller, dtype, counts, displs, length, seed)


def gather_equal(comm, caller, dtype, count, seed=0):
    counts = [count] * comm.size
    gather(comm, caller, dtype, counts, _packed(counts), sum(counts), seed)


def gather_uneven_chunks(comm, caller):
    """Some ranks send many chunks and others few."""
    counts = [(0, 5000, 3, 171, 170, 1)[r % 6] for r in range(comm.size)]
    gather(comm, caller, "f8", counts, _packed(counts), sum(counts))


def gather_bytes(comm, caller, total):
    gather_equal(comm, caller, "u1", total // comm.size)


def gather_again(comm, caller, count):
    """The same call in a row, each time with other data."""
    for seed in range(4):
        gather_equal(comm, caller, "f8", count, seed)


def gather_odd_addresses(comm, caller, count):
    size, rank = comm.size, comm.rank
    for offset in (1, 3, 7):
        sends = [block("u1", r, count, offset) for r in range(size)]
        send = sentinels("u1", count + 8)[offset : offset + count]
        send[:] = sends[rank]
        whole = sentinels("u1", size * count + 16)
        displs = [9 - offset + r * count for r in range(size)]
        expected = allgatherv(whole, sends, displs)
        calls(caller, comm.rank).allgatherv(
            comm, send, whole, *as_tables("int64", [count] * size, displs)
        )
        assert_same_bytes(whole, expected)


def gather_from_late_and_silent(comm, caller, pause_s):
    """A late rank that sends nothing; return when this rank entered, and when it left."""
    comm.barrier()
    late = comm.size - 1
    if comm.rank == late:
        time.sleep(pause_s)
    counts = [0 if r == late else 3 for r in range(comm.size)]
    entered = time.monotonic()
    gather(comm, caller, "f8", counts, _packed(counts), sum(counts))
    return entered, time.monotonic()


def gather_in_place(comm, caller, count):
    counts = [count + r for r in range(comm.size)]
    displs = [d + 1 for d in _packed(counts)]
    sends = [block("f8", r, counts[r]) for r in range(comm.size)]
    recv = sentinels("f8", sum(counts) + 2)
    own = recv[displs[comm.rank] : displs[comm.rank] + counts[comm.rank]]
    expected = allgatherv(recv, sends, displs)
    own[:] = sends[comm.rank]
    calls(caller, comm.rank).allgatherv(comm, own, recv, *as_tables("int64", counts, displs))
    assert_same_bytes(recv, expected)


def gather_shapes(comm, caller):
    """2-D blocks into a 3-D array, and 0-d ones into a vector."""
    sends = [block("f8", r, (3, 4)) for r in range(comm.size)]
    recv = sentinels("f8", (comm.size, 3, 4))
    tables = as_tables("int64", [12] * comm.size, [12 * r for r in range(comm.size)])
    calls(caller, comm.rank).allgatherv(comm, sends[comm.rank], recv, *tables)
    assert_same_bytes(recv, np.stack(sends))
    single = np.array(float(comm.rank) + 0.5)
    vector = sentinels("f8", comm.size)
    tables = as_tables("int64", [1] * comm.size, list(range(comm.size)))
    calls(caller, comm.rank).allgatherv(comm, single, vector, *tables)
    assert vector.tolist() == [r + 0.5 for r in range(comm.size)]


def gather_read_only_send(comm, caller):
    send = block("f8", comm.rank, 5)
    send.flags.writeable = False
    recv = sentinels("f8", 5 * comm.size)
    tables = as_tables("int64", [5] * comm.size, [5 * r for r in range(comm.size)])
    calls(caller, comm.rank).allgatherv(comm, send, recv, *tables)
    assert_same_bytes(recv, np.concatenate([block("f8", r, 5) for r in range(comm.size)]))


SMALLEST, GAPS = ("smallest",), {"name": ["gaps"], "dtype": ["f8"]}
CASES = [
    Case("layouts", gather_every_layout, {"dtype": ["f8"]}, callers=EVERY, check=QUICK),
    Case(
        "many_chunks", gather_equal, {"dtype": ["f8"], "count": [2000]}, buffers=SMALLEST,
        check=QUICK,
    ),
    Case("some_ranks_send_many_chunks_and_others_few", gather_uneven_chunks, buffers=SMALLEST),
    Case(
        "every_layout_in_many_chunks_of_large_elements", gather_every_layout,
        {"dtype": [STRUCTURED]}, callers=("python",), buffers=SMALLEST,
    ),
    Case(
        "element_larger_than_a_chunk", gather_layout, {"name": ["uneven"], "dtype": ["V5000"]},
        callers=("python",), buffers=SMALLEST,
    ),
    Case(
        "edges_of_inline_and_chunk", gather_equal,
        {"dtype": ["f8"], "count": [Together([11, 12, 13, 170, 171, 341])]}, buffers=SMALLEST,
    ),
    Case("same_call_with_other_data", gather_again, {"count": [Together([4, 12, 1000])]}),
    Case(
        "odd_addresses", gather_odd_addresses, {"count": [Together([5, 1500, 9001])]},
        buffers=("small",),
    ),
    Case(
        "twenty_mebibytes", gather_bytes, {"total": [20 * 2**20]}, callers=("python",),
        where="typed",
    ),
    Case(
        "late_rank_that_sends_nothing", gather_from_late_and_silent, {"pause_s": [0.1]},
        expect=nobody_left_early,
    ),
    Case("hundred_thousand_each", gather_equal, {"dtype": ["f8"], "count": [100_000]}),
    Case("dtypes", gather_every_layout, {"dtype": PLAIN}, callers=EVERY),
    Case("dtypes_of_python", gather_every_layout, {"dtype": PYTHON_ONLY}, callers=("python",)),
    Case(
        "own_block_in_place", gather_in_place, {"count": [Together([0, 1, 50, 5000])]},
        buffers=SMALLEST, check=QUICK,
    ),
    Case(
        "tables", gather_layout,
        {**GAPS, "tables": [Together(["tuple", "int64", "int32", "uint64", "strided"])]},
    ),
    Case(
        "tables_of_python", gather_layout,
        {**GAPS, "tables": ["list"]}, callers=("python",),
    ),
    Case(
        "tables_of_njit", gather_layout,
        {**GAPS, "tables": ["typed list"]}, callers=("njit",),
    ),
    Case("two_and_no_dimensions", gather_shapes),
    Case("send_may_be_read_only", gather_read_only_send),
]  # fmt: skip
