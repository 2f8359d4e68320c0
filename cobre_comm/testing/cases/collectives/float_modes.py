"""Folds and exact sums do not depend on the floating-point mode that a rank has set."""

import contextlib
import ctypes
import platform
import sys

import numpy as np

from cobre_comm import CommError, ReduceOp
from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import Case, Together
from cobre_comm.testing.cases.collectives.exact_sum import expected
from cobre_comm.testing.cases.reference import assert_same_fold, fold, numbers

# The bits of MXCSR (x86-64) or FPCR (aarch64) that set each mode: flush subnormals to zero, or
# round in another direction. The number before these bits says which word of the C library's
# environment (fegetenv) holds the register.
MACHINES = {
    "x86_64": (7, {"flush": 0x8040, "down": 0x2000, "up": 0x4000, "zero": 0x6000}),
    "aarch64": (0, {"flush": 1 << 24, "up": 1 << 22, "down": 1 << 23, "zero": 3 << 22}),
}
IS_KNOWN = sys.platform == "linux" and platform.machine() in MACHINES
PLACE, MODES = MACHINES[platform.machine()] if IS_KNOWN else (0, {})
DTYPES = ("f8", "f4")
OPS = (ReduceOp.SUM, ReduceOp.PROD, ReduceOp.MIN, ReduceOp.MAX, ReduceOp.LAND, ReduceOp.LOR)
LENGTHS = (7, 5000)


def _environment():
    words = (ctypes.c_uint32 * 16)()
    assert ctypes.CDLL(None).fegetenv(words) == 0
    return words


@contextlib.contextmanager
def mode_of(name):
    """Set a mode, as a library may do when it is loaded; check at the end that it is still set."""
    before, changed = _environment(), _environment()
    changed[PLACE] |= MODES[name]
    assert ctypes.CDLL(None).fesetenv(changed) == 0
    try:
        yield
        kept = _environment()[PLACE] & MODES[name]
    finally:
        ctypes.CDLL(None).fesetenv(before)
    assert kept == MODES[name], f"{name} was taken away: {kept:#x}"


def given(dtype, rank, length):
    """Return numbers of all magnitudes, of which every third is subnormal."""
    drawn = numbers(dtype, rank, length)
    word = f"u{drawn.itemsize}"
    small = (np.arange(length) % 1000 * 3 + rank + 1).astype(word).view(dtype)
    return np.where(np.arange(length) % 3 == 1, small, drawn)


def reduce_in_modes(comm, caller, mode):
    """The last rank is in another floating-point mode than the other ranks."""
    made = calls(caller, comm.rank)
    for dtype in DTYPES:
        for length in LENGTHS:
            everyone = [given(dtype, rank, length) for rank in range(comm.size)]
            finite = [np.where(np.isfinite(each), each, 1).astype(dtype) for each in everyone]
            rights = [fold(op, everyone) for op in OPS]
            found = [np.empty(length, dtype) for _ in OPS]
            with mode_of(mode) if comm.rank == comm.size - 1 else contextlib.nullcontext():
                for op, recv in zip(OPS, found, strict=True):
                    made.allreduce(comm, everyone[comm.rank], recv, op)
                total = made.exact_sum(comm, finite[comm.rank])
            for op, recv, right in zip(OPS, found, rights, strict=True):
                assert_same_fold(recv, right, op)
            assert total.hex() == expected(np.concatenate(finite)).hex()


def fail_in_modes(comm, caller, mode):
    """A collective that fails restores the caller's floating-point mode too."""
    made = calls(caller, comm.rank)
    with mode_of(mode):
        error = None
        try:
            made.allreduce(comm, np.ones(3 + comm.rank), np.ones(3 + comm.rank))
        except CommError as raised:
            error = raised
    assert "disagree" in str(error)


CASES = [
    Case("of_one_rank", reduce_in_modes, {"mode": [Together(MODES)]}),
    Case(
        "after_a_failure", fail_in_modes, {"mode": ["zero"]}, sizes=(2,), needs=("disagreement",),
        fresh=True,
    ),
][: 2 * IS_KNOWN]  # fmt: skip
