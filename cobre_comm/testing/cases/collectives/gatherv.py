"""gatherv: the root gets every block at its displacement; the other ranks receive nothing."""

import numpy as np

from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import EVERY, QUICK, Case, Together
from cobre_comm.testing.cases.collectives.allgatherv import Layout, layouts, packed
from cobre_comm.testing.cases.reference import (
    STRUCTURED,
    allgatherv,
    among_sentinels,
    assert_same_bytes,
    block,
    sentinels,
)


def gather(comm, caller, dtype, layout, root, seed=0):
    """Gather on the root; other ranks pass None or empty arrays as recv, counts and displs."""
    sends = [block(dtype, r, count, seed) for r, count in enumerate(layout.counts)]
    send = among_sentinels(sends[comm.rank])
    gatherv = calls(caller, comm.rank).gatherv
    if comm.rank == root:
        recv = sentinels(dtype, layout.length)
        expected = allgatherv(recv, sends, layout.displs)
        gatherv(comm, send, recv, np.array(layout.counts), np.array(layout.displs), root)
        assert_same_bytes(recv, expected)
    elif (comm.rank + seed) % 2:
        gatherv(comm, send, None, None, None, root)
    else:
        none = np.empty(0, np.int64)
        gatherv(comm, send, np.empty(0, dtype), none, none, root)
    assert_same_bytes(send, sends[comm.rank])


def gather_layouts(comm, caller, dtype):
    """Gather in every layout of an allgatherv, each time to another root."""
    for number, layout in enumerate(layouts(comm.size).values()):
        gather(comm, caller, dtype, layout, number % comm.size, number)


def gather_chunks(comm, caller, dtype, longest):
    """Each rank is the root twice: rank 0 has the longest block, then the last rank has it."""
    for root in range(comm.size):
        for seed in range(2):
            counts = [longest >> ((r + seed) % comm.size) for r in range(comm.size)]
            gather(comm, caller, dtype, packed(counts), root, seed)


def gather_again(comm, caller, count):
    """Make the same call four times in a row, each time with other data."""
    for seed in range(4):
        gather(comm, caller, "f8", packed([count] * comm.size), 0, seed)


def gather_in_place(comm, caller, count):
    """The root sends its own block of recv; an array that another rank passes keeps its bytes."""
    root = comm.size - 1
    sends = [block("f8", r, count) for r in range(comm.size)]
    displs = count * np.arange(comm.size)
    recv = sentinels("f8", comm.size * count)
    expected = recv.copy()
    send = sends[comm.rank]
    if comm.rank == root:
        send = recv[root * count :]
        send[:] = sends[root]
        expected = np.concatenate(sends)
    calls(caller, comm.rank).gatherv(comm, send, recv, np.full(comm.size, count), displs, root)
    assert_same_bytes(recv, expected)


def gather_far_apart(comm, caller):
    """Gather blocks in the reverse order, with gaps, into a long recv."""
    counts = [700 + r for r in range(comm.size)]
    displs = [2000 * (comm.size - 1 - r) + 5 for r in range(comm.size)]
    gather(comm, caller, "i4", Layout(counts, displs, 2000 * comm.size + 9), comm.size - 1)


CASES = [
    Case(
        "layouts", gather_layouts, {"dtype": ["f8"]}, callers=EVERY, buffers=("default", "small"),
        check=QUICK,
    ),
    Case(
        "many_chunks", gather_chunks, {"dtype": ["f8"], "longest": [6001]},
        buffers=("small", "smallest"), check=QUICK,
    ),
    Case("long", gather_chunks, {"dtype": ["i4"], "longest": [300_007]}),
    Case("dtypes", gather_layouts, {"dtype": ["?", "i2", "c16", STRUCTURED, "S5"]}),
    Case("same_call_with_other_data", gather_again, {"count": [Together([3, 40, 1000])]}),
    Case("own_block_in_place", gather_in_place, {"count": [Together([1, 40, 3000])]}),
    Case("far_apart", gather_far_apart),
]  # fmt: skip
