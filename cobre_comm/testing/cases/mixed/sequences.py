"""Sequences of random collectives; each result is compared with the reference."""

import random
from typing import NamedTuple

from cobre_comm import CommError, ReduceOp
from cobre_comm.testing.cases.calls import calls, chosen
from cobre_comm.testing.cases.case import EVERY, NEVER, QUICK, Case, Slow
from cobre_comm.testing.cases.collectives import allgatherv, allreduce, broadcast
from cobre_comm.testing.cases.reference import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    PLAIN,
    PYTHON_ONLY,
    ops_of,
)

LENGTHS = [1, 2, 12, 13]


class Choice(NamedTuple):
    """The dtypes and dimensions from which a caller's random calls are drawn."""

    plain: list  # dtypes for collectives that move data
    numbers: list  # dtypes for collectives that fold
    complexes: list
    dimensions: int


OF_PYTHON = Choice([*PLAIN, *PYTHON_ONLY], [*INTEGERS, *FLOATS], COMPLEX, 4)
COMPILED = Choice(["f8", "i4"], ["f8", "i4"], [], 2)  # few, because each type costs a compilation


def four_in_a_row(comm, caller):
    allgatherv.gather_equal(comm, caller, "f8", 10)
    allreduce.reduce(comm, caller, "f8", ReduceOp.SUM, 4)
    calls(caller, comm.rank).barrier(comm)
    allgatherv.gather_equal(comm, caller, "f8", 10, seed=1)


def random_operations(comm, caller, seed, count, longest):
    """Make the same random collectives on every rank, of any dtype, operation, shape and root."""
    draw = random.Random(seed)
    choice = OF_PYTHON if caller == "python" else COMPILED
    for number in range(count):
        who = draw.choice(["python", "njit"]) if caller == "either" else caller
        who = chosen(who, comm.rank + number)
        body = draw.choice([_random_gather, _random_reduce, _random_cast, _barrier])
        length = draw.choice([*LENGTHS, draw.randrange(1, longest)])
        try:
            body(comm, who, draw, choice, length)
        except CommError:
            raise
        except Exception as error:
            error.add_note(f"operation {number} of seed {seed}: {body.__name__}, from {who}")
            raise


def _random_gather(comm, who, draw, choice, length):
    counts = [draw.choice([0, draw.randrange(length + 1)]) for _ in range(comm.size)]
    layout = allgatherv.scattered(draw, counts)
    allgatherv.gather(comm, who, draw.choice(choice.plain), layout, draw.randrange(1000))


def _random_reduce(comm, who, draw, choice, length):
    dtype = draw.choice([*choice.numbers, *choice.complexes])
    op, shape = draw.choice(ops_of(dtype)), _shape(draw, choice, length, 1)
    reduce = draw.choice([allreduce.reduce, allreduce.reduce_in_place])
    reduce(comm, who, dtype, op, shape, draw.randrange(1000))


def _random_cast(comm, who, draw, choice, length):
    dtype, shape = draw.choice(choice.plain), _shape(draw, choice, length, 0)
    broadcast.cast(comm, who, dtype, shape, draw.randrange(comm.size), draw.randrange(1000))


def _barrier(comm, who, draw, choice, length):
    calls(who).barrier(comm)


def _shape(draw, choice, length, smallest):
    """Draw the shape of a long vector, or of a small array of a few dimensions."""
    dimensions = draw.randint(1, choice.dimensions)
    return draw.choice([(length,), tuple(draw.randrange(smallest, 9) for _ in range(dimensions))])


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
        timeout_s=1000, check=NEVER, **{**RANDOM, "callers": ("either",)},
    ),
]  # fmt: skip
