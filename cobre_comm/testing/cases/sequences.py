"""Collectives in any order after one another, drawn by chance, each against its reference."""

import random

from cobre_comm import CommError, ReduceOp
from cobre_comm.testing.cases import allgatherv, allreduce, broadcast
from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import EVERY, NEVER, QUICK, Case, Slow
from cobre_comm.testing.cases.reference import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    OPS,
    PLAIN,
    PYTHON_ONLY,
)

COMPILED = ["f8", "i4"]  # each type costs a compilation
LENGTHS = [1, 2, 12, 13]


def four_in_a_row(comm, caller):
    allgatherv.gather_equal(comm, caller, "f8", 10)
    allreduce.reduce(comm, caller, "f8", ReduceOp.SUM, 4)
    calls(caller, comm.rank).barrier(comm)
    allgatherv.gather_equal(comm, caller, "f8", 10, seed=1)


def random_operations(comm, caller, seed, count, longest):
    """The same random collectives on every rank: any table, dtype, operation, shape and root."""
    draw = random.Random(seed)
    for number in range(count):
        who = draw.choice(["python", "njit"]) if caller == "either" else caller
        if who == "mixed":
            who = ("python", "njit")[(comm.rank + number) % 2]
        kind = draw.choice(["allgatherv", "allreduce", "broadcast", "barrier"])
        try:
            _random_operation(comm, who, caller, kind, draw, number, longest)
        except CommError:
            raise
        except Exception as error:
            error.add_note(f"operation {number} of seed {seed}: {kind}, from {who}")
            raise


def _random_operation(comm, who, caller, kind, draw, number, longest):
    in_python = caller == "python"
    length = draw.choice([*LENGTHS, draw.randrange(1, longest)])
    if kind == "allgatherv":
        dtype = draw.choice([*PLAIN, *PYTHON_ONLY] if in_python else COMPILED)
        counts = [draw.choice([0, draw.randrange(length + 1)]) for _ in range(comm.size)]
        displs, end = allgatherv.scattered(draw, counts)
        allgatherv.gather(comm, who, dtype, counts, displs, end + draw.randrange(3), seed=number)
    elif kind == "allreduce":
        op, in_place = draw.choice(OPS), draw.random() < 0.5
        complexes = COMPLEX if op == ReduceOp.SUM else []
        dtype = draw.choice([*INTEGERS, *FLOATS, *complexes] if in_python else COMPILED)
        shape = _shape(draw, length, 1, 4 if in_python else 2)
        allreduce.reduce(comm, who, dtype, op, shape, number, in_place)
    elif kind == "broadcast":
        dtype = draw.choice([*PLAIN, *PYTHON_ONLY] if in_python else COMPILED)
        shape = _shape(draw, length, 0, 4 if in_python else 2)
        broadcast.cast(comm, who, dtype, shape, draw.randrange(comm.size), number)
    else:
        calls(who).barrier(comm)


def _shape(draw, length, smallest, dimensions):
    """A long vector, or an array of a few dimensions, of 0 elements too if these may be."""
    small = tuple(draw.randrange(smallest, 9) for _ in range(draw.randint(1, dimensions)))
    return draw.choice([(length,), small])


RANDOM = {"callers": (*EVERY, "either"), "buffers": ("small",)}  # either: by chance
CASES = [
    Case("four_in_a_row", four_in_a_row, callers=EVERY, check=QUICK),
    Case(
        "random_operations", random_operations,
        {"seed": [20261, Slow(1), Slow(2)], "count": [150], "longest": [2000]},
        check=QUICK, **RANDOM,
    ),
    Case(
        "ten_thousand_random_operations", random_operations,
        {"seed": [Slow(777)], "count": [10_000], "longest": [3000]}, where="thorough",
        timeout_s=1000, check=NEVER, **RANDOM,
    ),
]  # fmt: skip
