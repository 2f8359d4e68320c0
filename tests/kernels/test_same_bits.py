"""Kernels give the same bits compiled for this processor, compiled for a plain one, and in Python.

Run as a program, this file prints the bytes of every result: those of collectives of one rank, of
folds, and of a hash.
"""

import json
import sys
import warnings

import numpy as np
import pytest
from cobre_kernels.collective import calls, checks, dtypes
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.reduction.fold import Fold, fold_kernel
from cobre_kernels.machine.build import build
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.made import CHOSEN
from cobre_kernels.machine.target import levels

from cobre_comm import LocalBackend, ReduceOp
from cobre_comm.testing.cases.reference import (
    ARITHMETIC,
    COMPLEX,
    FLOATS,
    INTEGERS,
    numbers,
    ops_of,
)
from tests.grid import slow
from tests.kernels import programs

COUNT = 40


@kernel(COMM, calls.Allgatherv)
def hash_kernel(comm, call):
    return checks.hash_tables(comm, call)


def collectives():
    with LocalBackend() as comm:
        for dtype in [*INTEGERS, *FLOATS, *COMPLEX]:
            send, recv = numbers(dtype, 1, COUNT), np.zeros(2 * COUNT, dtype)
            comm.barrier()
            comm.allreduce(send, recv[:COUNT], ReduceOp.SUM)
            comm.allgatherv(send, recv, [COUNT], [COUNT])
            comm.broadcast(recv, 0)
            yield f"collectives of {dtype}", recv
        yield "exact sum", np.array([comm.exact_sum(numbers("f8", 2, COUNT))])


def folds():
    for dtype in [*INTEGERS, *FLOATS]:
        for op in ops_of(dtype):
            special = op not in ARITHMETIC  # if arithmetic gives a NaN, no promise says which NaN
            acc, x = (numbers(dtype, rank, COUNT, special=special) for rank in (1, 2))
            code = dtypes.CODES[acc.dtype]
            fold_kernel.call(0, *Fold(code, op, acc.ctypes.data, x.ctypes.data, acc.nbytes))
            yield f"{op.name} of {dtype}", acc


def hashes():
    words, tables = COMM.array(3), np.array([5, 6, 7, 0, 9, 20])
    COMM.of(words).size = 3
    at = tables.ctypes.data
    call = calls.Allgatherv(0, 6, 0, 27, 8, dtypes.FLOAT64, at, at + 24, 3, 3)
    yield "hash", np.array([hash_kernel.call(words.ctypes.data, *call)])


def results():
    """Return the bytes of every result, by its name."""
    with warnings.catch_warnings(action="ignore"):  # NumPy's scalars warn when an integer overflows
        found = [*collectives(), *folds(), *hashes()]
    return {name: array.tobytes().hex() for name, array in found}


# The plain processor has vectors of 128 bits and no fused multiply-add.
@pytest.mark.parametrize("other_way", ["Python", slow("x86-64")])
def test_one_rank_gives_the_same_bits(other_way, tmp_path):
    how = {"NUMBA_DISABLE_JIT": "1"}
    if other_way != "Python":
        if other_way not in levels():
            pytest.skip(f"this processor has no level {other_way}")
        build([other_way], tmp_path)
        how = {CHOSEN: str(tmp_path)}
    here, found = results(), json.loads(programs.output_of("test_same_bits", **how))
    assert len(here) > 30
    assert {name: bits for name, bits in found.items() if bits != here[name]} == {}
    assert set(found) == set(here)


if __name__ == "__main__":
    json.dump(results(), sys.stdout)
