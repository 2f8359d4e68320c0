"""Outputs in shared regions: results are right, wherever in the regions the ranks' outputs lie.

Ranks may copy less if their outputs are the same memory. They must notice if the outputs are not.
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

ROUNDS = 10
OFFSET = 3  # elements before an output, so that no output begins at a cache line


def output_of(comm, where, dtype, length):
    """Return memory in which a rank receives; most of it lies in one of two regions.

    ``"all"``: all ranks of a node have the same output. ``"views"``: as ``"all"``, and the regions
    are closed. ``"some"``: as ``"all"``, but the last rank has a private output. ``"one"``: only
    the last rank's output is in a region. ``"apart"``: each rank has a separate part of a region.
    ``"two"``: every other rank has its output in the second region. ``"shifted"``: each rank's
    output begins one element after that of the rank before, so that the outputs overlap.
    ``"node"``: as ``"all"`` on rank 0's node; on other nodes the outputs are private.
    """
    step = {"apart": length, "shifted": 1}.get(where, 0)
    count = OFFSET + (comm.size - 1) * step + length
    regions = [comm.create_shared_region(count, dtype) for _ in range(2)]
    region = regions[comm.rank % 2 if where == "two" else 0]
    begin = OFFSET + comm.rank * step
    output = region.part(begin, begin + length)
    is_last = comm.rank == comm.size - 1
    is_private = (where == "some" and is_last) or (where == "one" and not is_last)
    if is_private or (where == "node" and not is_with_rank_0(comm, region)):
        output = np.zeros(length, dtype)
    if where == "views":
        for region in regions:
            region.close()
    return output


def is_with_rank_0(comm, region):
    """Return whether this rank shares the region's memory with rank 0."""
    if comm.rank == 0:
        region.part(0, 1)[:] = 1
    region.fence()
    return region.as_slice()[0] == 1


def gather(comm, caller, where, dtype, count):
    """Gather blocks of different lengths, some of them in place, with new data each time."""
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
        comm.barrier()  # no rank may write while other ranks still compare


def reduce(comm, caller, where, dtype, count):
    """Reduce from private memory, from a region, or from both, and in place."""
    output = output_of(comm, where, dtype, count)
    contributions = [numbers(dtype, r, count) for r in range(comm.size)]
    send = contributions[comm.rank]
    sources = comm.create_shared_region(comm.size * count, dtype)
    source = sources.part(comm.rank * count, (comm.rank + 1) * count)
    source[:] = send
    for sent in (send, source, source if comm.rank else send):
        for op in (ReduceOp.SUM, ReduceOp.MAX):
            reduce_once(comm, caller, op, sent, output, contributions)
    if where in ("all", "views"):  # all ranks of a node send from the same memory
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
    """Broadcast from every rank, with new data each time."""
    output = output_of(comm, where, dtype, count)
    for root in range(comm.size):
        expected = block(dtype, root, count, root)
        if comm.rank == root:
            output[:] = expected
        calls(caller, comm.rank).broadcast(comm, output, root)
        assert_same_bytes(output, expected)
        comm.barrier()


def write_at_once(comm, caller, operation, where, length):
    """A rank writes to its part of the output after a call, and no rank overwrites the part."""
    output, rank = output_of(comm, where, "f8", length), comm.rank
    call, came_over, incomplete = getattr(calls(caller, rank), operation), [], []
    for number in range(ROUNDS):
        counts, root = np.full(comm.size, length // comm.size), number % comm.size
        counts[root] = 0
        displs = np.cumsum(counts) - counts
        expected, mine = np.arange(length) + float(number), of_rank(comm, where, counts, displs)
        own_block = slice(displs[rank], displs[rank] + counts[rank])
        send = expected[own_block]
        if number % 3 == 1 and where != "shifted":
            output[own_block] = send
            send = output[own_block]
        if operation == "allreduce":
            call(comm, expected - rank, output, ReduceOp.MAX)
        elif operation == "broadcast":
            if rank == root:
                output[:] = expected
            call(comm, output, root)
        elif operation == "gatherv":
            call(comm, send, output, counts, displs, root)
        else:
            call(comm, send, output, counts, displs)
        if where != "shifted" and (operation != "gatherv" or rank == root):
            incomplete += [] if np.array_equal(output[mine], expected[mine]) else [number]
        output[mine] = -1.0 - rank
        comm.barrier()
        came_over += [] if (output[mine] == -1.0 - rank).all() else [number]
        comm.barrier()
    mistakes = comm.max(len(incomplete) + len(came_over))  # so that all ranks raise together
    assert mistakes == 0, f"incomplete in rounds {incomplete}, written over in {came_over}"


def of_rank(comm, where, counts, displs):
    """Return a part of a rank's output that no other rank's output overlaps."""
    begin, count = displs[comm.rank], counts[comm.rank]
    if where == "shifted":
        begin, count = begin + comm.size - comm.rank, max(count - comm.size, 0)
    return slice(begin, begin + count)


def many_regions(comm, caller):
    """Forty regions exist at once, ten of them made anew; each works as an output."""
    regions = [comm.create_shared_region(600) for _ in range(40)]
    for region in regions[:10]:
        region.close()
    regions[:10] = [comm.create_shared_region(600) for _ in range(10)]
    for seed, region in enumerate(regions):
        contributions = [numbers("f8", r, 600, seed, special=False) for r in range(comm.size)]
        output, send = region.part(0, 600), contributions[comm.rank]
        reduce_once(comm, caller, ReduceOp.SUM, send, output, contributions)


case = partial(Case, needs=("regions",))
WHERE = {"where": [Together(["all", "some", "one", "apart", "two", "views"])]}
SIZES = [Together([1, 12, 40, 1000, 9001])]
ALL_WHERE = ["all", "some", "one", "apart", "two", "views", "shifted", "node"]
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
    case(
        "write_at_once", write_at_once,
        {
            "operation": ["allgatherv", "allreduce", "broadcast", "gatherv"],
            "where": [Together(ALL_WHERE)],
            "length": [Together([600, 60_000])],
        },
    ),
    case("many_regions", many_regions),
]  # fmt: skip
