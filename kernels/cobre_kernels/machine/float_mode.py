"""The floating-point mode of a thread: how it rounds, and which tiny numbers it treats as zero.

A mode is a word. Every thread begins in mode 0, which rounds to nearest, and keeps subnormal
numbers. A library that gcc has linked with ``-ffast-math`` sets another mode in the thread that
loads it, and a solver or a library of intervals may do the same. The bits of a mode are bits of
MXCSR on x86-64, and of FPCR on aarch64. The flags of floating-point exceptions, and the bits that
say which exceptions trap, do not belong to a mode.

If nothing is compiled, mode 0 is the only mode.
"""

from cobre_kernels.machine.compiled import instruction, routine
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.record import Record, word

KEPT_MODE = Record(
    "KeptMode",
    "The mode that a thread of Python had; in memory of that thread alone.",
    mode=word("the mode"),
)


@instruction
def float_mode():
    """Return the mode of this thread."""
    return 0


@instruction
def set_float_mode(mode):
    """Set the mode of this thread.

    LLVM moves arithmetic past this instruction. So arithmetic that depends on the mode must be in a
    kernel, which is called by address, or must begin with the result of :func:`in_float_mode`.
    """


@instruction
def in_float_mode(number, mode):
    """Set the mode, and return the number; LLVM moves no arithmetic on the result before that."""
    return number


@routine
def leave_float_mode():
    """Set mode 0, and return the mode that this thread had, for :func:`return_to_float_mode`."""
    mode = float_mode()
    if mode != 0:
        set_float_mode(0)
    return mode


@routine
def return_to_float_mode(mode):
    """Set the mode that this thread had before :func:`leave_float_mode`."""
    if mode != 0:
        set_float_mode(mode)


@kernel(KEPT_MODE)
def leave_float_mode_kernel(kept):
    """Set mode 0 for what Python does until :func:`return_to_float_mode_kernel`."""
    kept.mode = leave_float_mode()
    return 0


@kernel(KEPT_MODE)
def return_to_float_mode_kernel(kept):
    """Set the mode that :func:`leave_float_mode_kernel` has kept."""
    return_to_float_mode(kept.mode)
    return 0
