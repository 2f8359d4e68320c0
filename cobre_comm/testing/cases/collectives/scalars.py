"""sum, min and max: one number from each rank, folded like an allreduce of one element."""

import numpy as np

from cobre_comm import ReduceOp
from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import EVERY, QUICK, Case, Together
from cobre_comm.testing.cases.reference import assert_same_fold, fold, numbers

NAMES = {"sum": ReduceOp.SUM, "min": ReduceOp.MIN, "max": ReduceOp.MAX}
KINDS = {"i8": int, "f8": float}
SEEDS = 12


def reduce_numbers(comm, caller, name, dtype):
    """Numbers of Python and of NumPy can be reduced; the result is a number of Python."""
    reduce = getattr(calls(caller, comm.rank), name)
    for seed in range(SEEDS):
        everyone = [numbers(dtype, rank, 3, seed) for rank in range(comm.size)]
        right = fold(NAMES[name], everyone)
        for number in range(3):
            mine = everyone[comm.rank][number]
            found = reduce(comm, mine if number else KINDS[dtype](mine))
            assert type(found) is KINDS[dtype], type(found)
            assert_same_fold(np.array([found], dtype), right[number : number + 1], NAMES[name])


def reduce_other_types(comm, caller):
    """A number of few bits is widened before it is folded: 200 as uint8 does not wrap."""
    made = calls(caller, comm.rank)
    assert made.sum(comm, np.uint8(200)) == 200 * comm.size
    assert made.max(comm, np.float32(0.1)) == float(np.float32(0.1))


def agree_with_an_array(comm, caller):
    """A sum is an allreduce, so other ranks may reduce an array of one element instead."""
    made = calls(caller, comm.rank)
    if comm.rank == 0:
        assert made.sum(comm, 1.5) == 1.5 * comm.size
    else:
        recv = np.zeros(1)
        made.allreduce(comm, np.array([1.5]), recv, ReduceOp.SUM)
        assert recv[0] == 1.5 * comm.size


CASES = [
    Case(
        "numbers", reduce_numbers, {"name": [Together([*NAMES])], "dtype": [Together([*KINDS])]},
        callers=EVERY, check=QUICK,
    ),
    Case("other_types", reduce_other_types),
    Case("an_array_of_one_element_agrees", agree_with_an_array),
]  # fmt: skip
