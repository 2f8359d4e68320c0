"""``exact_sum`` in ``@njit`` code."""

from __future__ import annotations

import numpy as np
from cobre_kernels.collective import status
from cobre_kernels.collective.calls import EXACT_SUM, ExactSum
from cobre_kernels.collective.reduction.exact_sum import WORDS
from cobre_kernels.machine.compiling.numba_internals import as_dtype
from cobre_kernels.machine.kernel import run
from numba import types

from cobre_comm.arguments.mistakes import DTYPE
from cobre_comm.arguments.slow_path import dtype_word
from cobre_comm.jit.arguments import array_problem, contiguity, refusal
from cobre_comm.jit.attributes import collective_method
from cobre_comm.jit.fields import checking, record_of
from cobre_comm.jit.problems import Problem

check = checking(EXACT_SUM)


def _exact_sum_problem(values):
    problem = array_problem("exact_sum", "values", values, writable=False)
    if problem is None and values.dtype not in (types.float64, types.float32):
        said = f"exact_sum: values must be float64 or float32, got {values.dtype}"
        return Problem(said, DTYPE)
    return problem


@collective_method("exact_sum")
def _exact_sum(comm, values):
    problem = _exact_sum_problem(values)
    if problem is not None:
        refuse = refusal(EXACT_SUM, problem)
        return lambda comm, values: refuse(comm)
    is_contiguous, dtype = contiguity(values), dtype_word(as_dtype(values.dtype))

    def exact_sum(comm, values):
        count = values.size
        if not is_contiguous(values):
            count = -status.NOT_CONTIGUOUS
        elif count > 0 and values.ctypes.data % values.itemsize != 0:
            count = -status.UNALIGNED
        record = record_of(comm)
        digits = np.zeros(WORDS, dtype=np.int64)
        call = ExactSum(values.ctypes.data, count, dtype, digits.ctypes.data)
        outcome = run(record.collectives[EXACT_SUM].entry, record, call)
        total = digits.view(np.float64)[0]
        check(record, call, outcome)
        return total

    return exact_sum
