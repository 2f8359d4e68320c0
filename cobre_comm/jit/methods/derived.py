"""Methods that are made of other collectives, in ``@njit`` code: sum, min, max and allgather.

The number that ``sum``, ``min`` or ``max`` reduces stays in the frame of the calling function.
"""

from __future__ import annotations

import numpy as np
from cobre_kernels.collective import dtypes, status
from cobre_kernels.collective.calls import ALLGATHER, ALLREDUCE, Allreduce
from cobre_kernels.collective.comm import IDLE
from cobre_kernels.collective.reduction.fold import MAX, MIN, SUM
from cobre_kernels.machine.atomics import WORD_BYTES, load_acquire
from cobre_kernels.machine.elements import element_access
from numba import types

from cobre_comm.arguments.mistakes import LIST
from cobre_comm.contract.derived import ARRAY_HINT
from cobre_comm.failure import Failure
from cobre_comm.jit.arguments import LARGEST, pair_problem, refusal, refused
from cobre_comm.jit.attributes import collective_method
from cobre_comm.jit.fields import entering, explain, in_frame, record_of
from cobre_comm.jit.methods.shares import tables
from cobre_comm.jit.problems import Problem

enter = entering(ALLREDUCE)

_KINDS = {
    types.Float: (np.float64, dtypes.FLOAT64, element_access(np.float64)[0]),
    types.Integer: (np.int64, dtypes.INT64, element_access(np.int64)[0]),
}


def _kind_of(x):
    """Return type, dtype code and reader for reducing ``x``; None if ``x`` is no int or float."""
    is_bool = isinstance(x, (types.Boolean, types.BooleanLiteral))
    found = [kind for base, kind in _KINDS.items() if isinstance(x, base) and not is_bool]
    return found[0] if found else None


def _overload_reduction(name, op):
    @collective_method(name)
    def typed(comm, x):
        kind = _kind_of(x)
        if kind is None:
            is_several = isinstance(x, (types.Array, types.List, types.ListType, types.BaseTuple))
            hint = f"; {ARRAY_HINT.format(name.upper())}" if is_several else ""
            problem = Problem(f"{name}: x must be an int or a float, got {x}{hint}", LIST)
            refuse = refusal(ALLREDUCE, problem)
            return lambda comm, x: refuse(comm)
        as_number, dtype, load = kind
        may_be_large, is_local = x == types.uint64, not comm.synchronises
        too_large = f"{name}: x does not fit a 64-bit signed integer"

        def reduce(comm, x):
            record = record_of(comm)
            if may_be_large and x > LARGEST:
                refused(record, ALLREDUCE, status.UNFIT)
                raise ValueError(too_large)
            number = as_number(x)
            if is_local and load_acquire(record.guard) == IDLE:
                return number
            at = in_frame(number)
            call = Allreduce(at, 1, at, 1, WORD_BYTES, dtype, op)
            enter(record, call)
            return load(at, 0)

        return reduce


for _name, _op in (("sum", SUM), ("min", MIN), ("max", MAX)):
    _overload_reduction(_name, _op)


@collective_method("allgather")
def _allgather(comm, send, recv):
    problem = pair_problem("allgather", send, recv)
    if problem is not None:
        refuse = refusal(ALLGATHER, problem)
        return lambda comm, send, recv: refuse(comm)

    def allgather(comm, send, recv):
        size, count = comm.size, send.size
        if recv.size != size * count:
            record = record_of(comm)
            refused(record, ALLGATHER, status.LENGTHS_DIFFER)
            lengths = in_frame((size * count, recv.size))
            explain(record, ALLGATHER, status.LENGTHS_DIFFER, lengths)
            raise Failure
        counts, displs = tables(size, count, size)
        comm.allgatherv(send, recv, counts, displs)

    return allgather
