"""allgatherv: every block is at its displacement, for every layout, length and dtype."""

import time
from typing import NamedTuple

import numpy as np
from numba.typed import List

from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import EVERY, QUICK, Case, Together
from cobre_comm.testing.cases.collectives.barrier import nobody_left_early
from cobre_comm.testing.cases.each_way import each_way
from cobre_comm.testing.cases.reference import (
    PLAIN,
    PYTHON_ONLY,
    STRUCTURED,
    allgatherv,
    assert_same_bytes,
    block,
    sentinels,
)


class Layout(NamedTuple):
    """Where the blocks lie in ``recv``, and the length of ``recv``."""

    counts: list
    displs: list
    length: int


def packed(counts):
    """Return a layout in which each block follows the one before without a gap."""
    return Layout(counts, [sum(counts[:r]) for r in range(len(counts))], sum(counts))


def layouts(size):
    """Return layouts by name."""
    uneven = [3 * r + 1 for r in range(size)]
    silent = [0 if r == size // 2 else r + 2 for r in range(size)]
    gaps = [2 + 5 * r for r in range(size)]
    odd = packed([(0, 1, 13, 12, 127)[r % 5] for r in range(size)])
    after = [sum(uneven[r + 1 :]) for r in range(size)]
    return {
        "uneven": packed(uneven),
        "one rank silent": packed(silent),
        "one element each": packed([1] * size),
        "gaps": Layout([3] * size, gaps, gaps[-1] + 9),
        "reversed": Layout(uneven, after, sum(uneven)),
        "nobody sends": Layout([0] * size, [0] * size, 4),
        "empty recv": packed([0] * size),
        "odd": odd._replace(length=odd.length + 1),
    }


def scattered(draw, counts):
    """Return a layout of blocks in a random order with small gaps."""
    order = list(range(len(counts)))
    draw.shuffle(order)
    displs, end = [0] * len(counts), 0
    for rank in order:
        end += draw.randrange(3)
        displs[rank] = end
        end += counts[rank]
    return Layout(counts, displs, end + draw.randrange(3))


def as_tables(layout, kind="int64"):
    """Return a layout whose counts and displacements are sequences of one kind, such as tuples."""
    makers = {
        "list": list,
        "tuple": tuple,
        "int64": lambda x: np.array(x, dtype=np.int64),
        "int32": lambda x: np.array(x, dtype=np.int32),
        "uint64": lambda x: np.array(x, dtype=np.uint64),
        "strided": lambda x: np.repeat(np.array(x, dtype=np.int64), 2)[::2],
        "typed list": List,
    }
    make = makers[kind]
    return layout._replace(counts=make(layout.counts), displs=make(layout.displs))


def meet(comm, caller, send, recv, sends, layout):
    """Gather the blocks of all ranks; elements outside the blocks must keep their bytes."""
    expected = allgatherv(recv, sends, layout.displs)
    calls(caller, comm.rank).allgatherv(comm, send, recv, layout.counts, layout.displs)
    assert_same_bytes(recv, expected)


def gather(comm, caller, dtype, layout, seed=0, tables="int64"):
    sends = [block(dtype, r, count, seed) for r, count in enumerate(layout.counts)]
    send, recv = sends[comm.rank].copy(), sentinels(dtype, layout.length)
    meet(comm, caller, send, recv, sends, as_tables(layout, tables))
    assert_same_bytes(send, sends[comm.rank])


def gather_own_block(comm, caller, dtype, layout, seed=0):
    """Each rank sends its own block of ``recv``, in place."""
    sends = [block(dtype, r, count, seed) for r, count in enumerate(layout.counts)]
    recv, begin = sentinels(dtype, layout.length), layout.displs[comm.rank]
    own = recv[begin : begin + layout.counts[comm.rank]]
    own[:] = sends[comm.rank]
    meet(comm, caller, own, recv, sends, as_tables(layout))


def gather_layout(comm, caller, name, dtype="f8", tables="int64"):
    gather(comm, caller, dtype, layouts(comm.size)[name], tables=tables)


def gather_every_layout(comm, caller, dtype="f8"):
    for seed, layout in enumerate(layouts(comm.size).values()):
        gather(comm, caller, dtype, layout, seed)


def gather_equal(comm, caller, dtype, count, seed=0):
    gather(comm, caller, dtype, packed([count] * comm.size), seed)


def gather_uneven_chunks(comm, caller):
    """Some ranks send many chunks, and others send few."""
    gather(comm, caller, "f8", packed([(0, 5000, 3, 171, 170, 1)[r % 6] for r in range(comm.size)]))


def gather_bytes(comm, caller, total):
    gather_equal(comm, caller, "u1", total // comm.size)


def gather_each_way(comm, caller, count):
    """Blocks of each length, from none to large ones, in place and not."""
    for _ in each_way(comm):
        for seed, make in enumerate((gather, gather_own_block)):
            layout = packed([(count, 0, count // 3, 1)[r % 4] for r in range(comm.size)])
            make(comm, caller, "u1", layout, seed)


def gather_odd_addresses(comm, caller, count):
    size = comm.size
    for offset in (1, 3, 7):
        sends = [block("u1", r, count, offset) for r in range(size)]
        send = sentinels("u1", count + 8)[offset : offset + count]
        send[:] = sends[comm.rank]
        displs = [9 - offset + r * count for r in range(size)]
        layout = as_tables(Layout([count] * size, displs, size * count + 16))
        meet(comm, caller, send, sentinels("u1", layout.length), sends, layout)


def gather_from_late_and_silent(comm, caller, pause_s):
    """The late rank sends nothing; return the times at which this rank entered and left."""
    comm.barrier()
    late = comm.size - 1
    if comm.rank == late:
        time.sleep(pause_s)
    entered = time.monotonic()
    gather(comm, caller, "f8", packed([0 if r == late else 3 for r in range(comm.size)]))
    return entered, time.monotonic()


def gather_in_place(comm, caller, count):
    layout = packed([count + r for r in range(comm.size)])
    one_later = [displacement + 1 for displacement in layout.displs]
    gather_own_block(comm, caller, "f8", Layout(layout.counts, one_later, layout.length + 2))


def gather_shapes(comm, caller):
    """Gather 2-D blocks into a 3-D array, and 0-d ones into a vector."""
    for shape in ((3, 4), ()):
        sends = [block("f8", r, shape) for r in range(comm.size)]
        layout = as_tables(packed([sends[0].size] * comm.size))
        recv = sentinels("f8", (comm.size, *shape))
        meet(comm, caller, sends[comm.rank], recv, sends, layout)


def gather_read_only_send(comm, caller):
    sends = [block("f8", r, 5) for r in range(comm.size)]
    sends[comm.rank].flags.writeable = False
    layout = as_tables(packed([5] * comm.size))
    meet(comm, caller, sends[comm.rank], sentinels("f8", layout.length), sends, layout)


SMALLEST, GAPS = ("smallest",), {"name": ["gaps"], "dtype": ["f8"]}
CASES = [
    Case("layouts", gather_every_layout, {"dtype": ["f8"]}, callers=EVERY, check=QUICK),
    Case(
        "many_chunks", gather_equal, {"dtype": ["f8"], "count": [2000]}, buffers=SMALLEST,
        check=QUICK,
    ),
    Case("each_way", gather_each_way, {"count": [200_003]}),
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
    Case(
        "same_call_with_other_data", gather_equal,
        {"dtype": ["f8"], "count": [Together([4, 12, 1000])], "seed": [Together(range(4))]},
    ),
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
