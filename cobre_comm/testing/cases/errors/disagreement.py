"""Ranks that call different collectives all get an error that names each call; none hangs."""

from functools import partial

import numpy as np

from cobre_comm import CollectiveFailed, InvalidBufferSize, ReduceOp
from cobre_comm.testing.cases.calls import OPERATIONS, calls
from cobre_comm.testing.cases.case import EVERY, NEVER, QUICK, Case
from cobre_comm.testing.cases.faults.calling import meet_failure, prepare
from cobre_comm.testing.cases.faults.survivors import check_later, ranks_in
from cobre_comm.testing.cases.raised import met

EITHER = (CollectiveFailed, InvalidBufferSize)


def call(operation, length=5, **keywords):
    return operation, length, keywords


def odd(operation, *words, **otherwise):
    """Return a plan in which only rank 1 makes a different call, and the words of the error."""
    return [call(operation), call(operation, **otherwise), call(operation)], list(words)


# The calls of ranks 0, 1 and 2, and words that every rank's message has to contain.
PLANS = {
    "operations": (
        [call("barrier"), call("allreduce"), call("barrier")],
        ["ranks 0 and 2 called barrier", "rank 1 called allreduce"],
    ),
    "split": (
        [call("split"), call("barrier"), call("split")],
        ["ranks 0 and 2 called split", "rank 1 called barrier"],
    ),
    "three operations": (
        [call("broadcast"), call("allreduce"), call("allgatherv")],
        ["rank 0 called broadcast", "rank 1 called allreduce", "rank 2 called allgatherv"],
    ),
    "barrier and long allgatherv": (
        [call("barrier"), call("allgatherv", 5000), call("allgatherv", 5000)],
        ["rank 0 called barrier", "ranks 1 and 2 called allgatherv"],
    ),
    "lengths of allreduce": odd("allreduce", "5 elements", "6 elements", length=6),
    "short and long allreduce": (
        [call("allreduce", 1), call("allreduce", 50_000), call("allreduce", 50_000)],
        ["float64, 1 element)", "50000 elements"],
    ),
    "same bytes, other dtype": odd("allreduce", "float64", "int64", dtype="i8"),
    "ops": (
        [call("allreduce", op=ReduceOp.MIN), call("allreduce", op=ReduceOp.MAX), call("allreduce")],
        ["MIN", "MAX", "SUM"],
    ),
    "numbers": odd("sum", "comm.sum of a float", "comm.sum of an int", dtype="i8"),
    "exact_sum and an allreduce of the same length": (
        [call("exact_sum"), call("allreduce", 70, dtype="i8"), call("allreduce", 70, dtype="i8")],
        ["rank 0 called exact_sum", "ranks 1 and 2 called allreduce"],
    ),
    "roots": odd("broadcast", "root=0", "root=1", root=1),
    "lengths of broadcast": odd("broadcast", "40 bytes", "40000 bytes", length=5000),
    "dtypes of broadcast": odd("broadcast", "float64", "int64", dtype="i8"),
    "counts": odd("allgatherv", "sends 5 elements", "sends 6 elements", length=6),
    "counts of gatherv": odd(
        "gatherv", "the root's counts", "sends 5 elements", "sends 6 elements", length=6
    ),
    "counts of a long gatherv": (
        [call("gatherv", 5), call("gatherv", 6), call("gatherv", 50_000)],
        ["the root's counts", "sends 6 elements", "sends 50000 elements"],
    ),
    "roots of gatherv": odd("gatherv", "gatherv(root=0", "gatherv(root=1", root=1),
    "dtypes of allgatherv": odd("allgatherv", "float64", "float32", dtype="f4"),
}


def at_fault(name):
    """Return the ranks that an error blames: ranks that make a call which no other rank makes.

    An error about the counts of a gatherv blames no rank.
    """
    made, _ = PLANS[name]
    is_known = not name.startswith("counts of")
    return tuple(rank for rank, one in enumerate(made) if is_known and made.count(one) == 1)


def disagree(comm, caller, name):
    """Each rank makes the call that its plan gives: (operation, length, keyword arguments)."""
    plans, _ = PLANS[name]
    prepare(comm, caller, *sorted({operation for operation, *_ in plans} - {*OPERATIONS, "split"}))
    operation, length, keywords = plans[comm.rank % len(plans)]
    caught, _, later, took = meet_failure(comm, caller, operation, length=length, **keywords)
    return caught, later, took


def disagree_on_tables(comm, caller, which):
    """Every rank passes valid counts and displacements, but one rank's differ from the others'."""
    comm.barrier()
    size = comm.size
    counts, displs = np.full(size, 2), 4 * np.arange(size)
    odd = comm.rank == size - 1
    if which == "displs" and odd:
        displs[0] += 1
    if which == "counts" and odd:
        counts[0] += 1
    if which == "swapped" and odd:
        displs[:2] = displs[1::-1].copy()
    recv = np.zeros(4 * size + 4)
    return met(calls(caller, comm.rank).allgatherv, comm, np.ones(2), recv, counts, displs)


def disagree_on_region(comm, which):
    comm.barrier()
    odd = comm.rank == comm.size - 1
    if which == "count":
        return met(comm.create_shared_region, 4 if odd else 5)
    if which == "shape":
        return met(comm.create_shared_region, (2, 3) if odd else (3, 2))
    if which == "dtype":
        return met(comm.create_shared_region, 4, np.int64 if odd else np.float64)
    if which == "placement":
        return met(comm.create_shared_region, 4, placement="leader" if odd else "owner")
    if which == "split" and odd:
        return met(comm.split_local)
    if which == "fence":
        regions = [comm.create_shared_region(2) for _ in range(2)]
        return met(regions[1 if odd else 0].fence)
    return met(comm.create_shared_region, 4)


def all_learn_who_called_what(ran):
    """Every rank's error contains the words of the plan, whoever the caller is."""
    [name] = ran.cell.arguments
    _, words = PLANS[name]
    for rank, (caught, later, took) in enumerate(ran.values):
        assert isinstance(caught, EITHER), repr(caught)
        assert all(word in str(caught) for word in words), (
            f"rank {rank} does not learn who called what: {caught}"
        )
        check_later(later, took, str(caught))
        assert caught.ranks == at_fault(name)
    told = {caught.message for caught, *_ in ran.values}
    assert len(told) == 1, f"ranks are told different things: {told}"


def all_learn_who_differs(ran):
    """Every rank's error names both calls, and says that rank 1 made the second of them."""
    for rank, (caught, *_) in enumerate(ran.values):
        assert isinstance(caught, CollectiveFailed), f"rank {rank}: {caught!r}"
        words = "called barrier", "rank 1 called allreduce"
        assert all(word in str(caught) for word in words), f"rank {rank}: {caught}"
        assert 0 in ranks_in(str(caught)), f"rank {rank}: {caught}"


def all_fail(ran):
    for rank, error in enumerate(ran.values):
        assert isinstance(error, EITHER), f"rank {rank}: {error!r}"


case = partial(
    Case, expect=all_fail, needs=("disagreement",), sizes=(3,), limit_s=10, fresh=True,
    buffers=("small",), check=NEVER, column="errors",
)  # fmt: skip
REGIONS = {"callers": (), "needs": ("disagreement", "regions", "split")}
CASES = [
    case(
        "calls", disagree, {"name": list(PLANS)}, expect=all_learn_who_called_what, callers=EVERY,
    ),
    case(
        "two_calls", disagree, {"name": ["operations"]}, expect=all_learn_who_differs, sizes=(2, 4),
        check=QUICK,
    ),
    case(
        "tables", disagree_on_tables, {"which": ["counts", "displs", "swapped"]}, sizes=(2, 4),
    ),
    case(
        "regions", disagree_on_region,
        {"which": ["count", "shape", "dtype", "placement", "split"]}, **REGIONS,
    ),
    case("fences", disagree_on_region, {"which": ["fence"]}, where="one node", **REGIONS),
]  # fmt: skip
