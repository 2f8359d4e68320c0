"""Outputs in shared regions: the same results as anywhere else, wherever the ranks' outputs lie.

Ranks whose outputs are the same memory may copy less; those whose outputs are not must notice.
"""

from functools import partial

import numpy as np

from cobre_comm import ReduceOp
from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import QUICK, Case, Together
from cobre_comm.testing.cases.reference import (
    assert_same_bytes,
    assert_same_fold,
    block,
    fold,
    numbers,
)

OFFSET = 3  # elements before an output: bytes that no cache line begins with


def output_of(comm, where, dtype, length):
    """Return memory in which a rank receives; most of it lies in one of two regions.

    Parameters
    ----------
    comm : Communicator
        The ranks.
    where : str
        ``"all"``: all ranks of a node have the same output. ``"views"``: so, and the regions are
        closed. ``"some"``: but the last rank has a private one. ``"one"``: only the last rank's is
        in a region. ``"apart"``: each has a part of its own. ``"two"``: every other rank receives
        in the other region.
    dtype : dtype
        Of the regions.
    length : int
        Elements of an output.
    """
    parts = comm.size if where == "apart" else 1
    regions = [comm.create_shared_region(OFFSET + parts * length, dtype) for _ in range(2)]
    region = regions[comm.rank % 2 if where == "two" else 0]
    begin = OFFSET + (comm.rank * length if where == "apart" else 0)
    output = region.block(begin, begin + length)
    is_last = comm.rank == comm.size - 1
    if (where == "some" and is_last) or (where == "one" and not is_last):
        output = np.zeros(length, dtype)
    if where == "views":
        for region in regions:
            region.close()
    return output


def gather(comm, caller, where, dtype, count):
    """Gather blocks of different lengths, some of them in place; each time other data."""
    counts = np.array([count + r for r in range(comm.size)])
    displs = np.cumsum(counts) - counts
    output = output_of(comm, where, dtype, int(counts.sum()))
    mine = slice(int(displs[comm.rank]), int(displs[comm.rank] + counts[comm.rank]))
    for in_place in ([], [0], range(comm.size), []):
        seed = len(in_place)
        sends = [block(dtype, r, int(n), seed) for r, n in enumerate(counts)]
        send = sends[comm.rank]
        if comm.rank in in_place:
            output[mine] = send
            send = output[mine]
        calls(caller, comm.rank).allgatherv(comm, send, output, counts, displs)
        assert_same_bytes(output, np.concatenate(sends))
        comm.barrier()  # nobody writes what others still compare


def reduce(comm, caller, where, dtype, count):
    """Reduce what lies in private memory, in a region, or in both, and in place."""
    output = output_of(comm, where, dtype, count)
    contributions = [numbers(dtype, r, count) for r in range(comm.size)]
    send = contributions[comm.rank]
    sources = comm.create_shared_region(comm.size * count, dtype)
    source = sources.block(comm.rank * count, (comm.rank + 1) * count)
    source[:] = send
    for sent in (send, source, source if comm.rank else send):
        for op in (ReduceOp.SUM, ReduceOp.MAX):
            reduce_once(comm, caller, op, sent, output, contributions)
    if where in ("all", "views"):  # what a node's ranks send is the same memory
        contributions = [contributions[0]] * comm.size
    if where in ("one", "apart") or (where in ("all", "views") and comm.is_leader):
        output[:] = contributions[comm.rank]
    comm.barrier()
    if where not in ("some", "two"):
        reduce_once(comm, caller, ReduceOp.SUM, output, output, contributions)


def reduce_once(comm, caller, op, send, output, contributions):
    calls(caller, comm.rank).allreduce(comm, send, output, op)
    assert_same_fold(output, fold(op, contributions), op)
    comm.barrier()


def cast(comm, caller, where, dtype, count):
    """Broadcast from every rank; each time other data."""
    output = output_of(comm, where, dtype, count)
    for root in range(comm.size):
        expected = block(dtype, root, count, root)
        if comm.rank == root:
            output[:] = expected
        calls(caller, comm.rank).broadcast(comm, output, root)
        assert_same_bytes(output, expected)
        comm.barrier()


def more_than_are_listed(comm, caller):
    """Forty regions live at once; each is right as an output, and so are those made afterwards."""
    regions = [comm.create_shared_region(600) for _ in range(40)]
    for region in regions[:10]:
        region.close()
    regions[:10] = [comm.create_shared_region(600) for _ in range(10)]
    for seed, region in enumerate(regions):
        contributions = [numbers("f8", r, 600, seed, special=False) for r in range(comm.size)]
        output, send = region.block(0, 600), contributions[comm.rank]
        reduce_once(comm, caller, ReduceOp.SUM, send, output, contributions)


case = partial(Case, needs=("regions",))
WHERE = {"where": [Together(["all", "some", "one", "apart", "two", "views"])]}
SIZES = [Together([1, 12, 40, 1000, 9001])]
CASES = [
    case("allgatherv", gather, {**WHERE, "dtype": ["f8", "u1"], "count": SIZES}, check=QUICK),
    case("allreduce", reduce, {**WHERE, "dtype": ["f8", "i1"], "count": SIZES}, check=QUICK),
    case("broadcast", cast, {**WHERE, "dtype": ["f8", "u1"], "count": SIZES}),
    case(
        "many_chunks_allreduce", reduce, {**WHERE, "dtype": ["f8"], "count": [3001]},
        buffers=("smallest",),
    ),
    case(
        "many_chunks_allgatherv", gather, {**WHERE, "dtype": ["f8"], "count": [3001]},
        buffers=("smallest",),
    ),
    case("more_than_are_listed", more_than_are_listed),
]  # fmt: skip
