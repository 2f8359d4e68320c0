"""Collectives in any order after one another, each against its reference."""

import random

from cobre_comm import ReduceOp
from cobre_comm.testing.cases import allgatherv, allreduce, broadcast
from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import EVERY, NEVER, QUICK, Case, Slow
from cobre_comm.testing.cases.reference import OPS


def four_in_a_row(comm, caller):
    allgatherv.gather_equal(comm, caller, "f8", 10)
    allreduce.reduce(comm, caller, "f8", ReduceOp.SUM, 4)
    calls(caller, comm.rank).barrier(comm)
    allgatherv.gather_equal(comm, caller, "f8", 10, seed=1)


def random_operations(comm, caller, seed, count, longest):
    """The same random collectives on every rank, each verified."""
    draw = random.Random(seed)
    for number in range(count):
        kind = draw.choice(["allgatherv", "allreduce", "broadcast", "barrier"])
        dtype = draw.choice(["f8", "i4"])
        length = draw.choice([1, 2, 12, 13, draw.randrange(1, longest)])
        who = draw.choice(["python", "njit"]) if caller == "either" else caller
        if kind == "allgatherv":
            counts = [draw.randrange(length + 1) for _ in range(comm.size)]
            displs, end = allgatherv.scattered(draw, counts)
            allgatherv.gather(
                comm, who, dtype, counts, displs, end + draw.randrange(3), seed=number
            )
        elif kind == "allreduce":
            op, in_place = draw.choice(OPS), draw.random() < 0.5
            allreduce.reduce(comm, who, dtype, op, length, number, in_place)
        elif kind == "broadcast":
            broadcast.cast(comm, who, dtype, length, draw.randrange(comm.size), number)
        else:
            calls(who, comm.rank + number).barrier(comm)


RANDOM = {"callers": (*EVERY, "either"), "buffers": ("small",)}  # either: by chance
CASES = [
    Case("four_in_a_row", four_in_a_row, callers=EVERY, check=QUICK),
    Case(
        "random_operations", random_operations,
        {"seed": [20261], "count": [150], "longest": [400]}, check=QUICK, **RANDOM,
    ),
    Case(
        "ten_thousand_random_operations", random_operations,
        {"seed": [Slow(777)], "count": [10_000], "longest": [3000]}, where="thorough",
        timeout_s=1000, check=NEVER, **RANDOM,
    ),
]  # fmt: skip
