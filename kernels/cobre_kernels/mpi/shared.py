"""What the collectives over MPI share: compiled once, and called by address."""

from numba import config

from cobre_kernels import layout
from cobre_kernels.machine.atomics import peek
from cobre_kernels.machine.kernel import call3, call5, call8
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi.round import agree_kernel, enter_kernel, hand_out_kernel, may_go_on
from cobre_kernels.mpi.table import leads

KERNELS = (enter_kernel, agree_kernel, hand_out_kernel)  # in the order of the state's words
ENTER = layout.SHARED_KERNELS
AGREE = layout.SHARED_KERNELS + 8
HAND_OUT = layout.SHARED_KERNELS + 16

if config.DISABLE_JIT:
    enter, hand_out = enter_kernel.function, hand_out_kernel.function
    agree_with = agree_kernel.function

else:

    @routine
    def enter(state, mpi, kind, length, detail):
        """Meet the ranks of this node; OK and DISAGREE are for the leaders to judge."""
        return call5(peek(state + ENTER), state, mpi, kind, length, detail)

    @routine
    def agree_with(state, mpi, outcome, kind, length, payload, payload_bytes, moves_data):
        """Exchange heads, and a few bytes of payload, with the other leaders; see ``round``."""
        return call8(
            peek(state + AGREE),
            state,
            mpi,
            outcome,
            kind,
            length,
            payload,
            payload_bytes,
            1 if moves_data else 0,
        )

    @routine
    def hand_out(state, mpi, outcome):
        """Give the ranks of this node the leader's verdict, and whatever is in the stage."""
        return call3(peek(state + HAND_OUT), state, mpi, outcome)


@routine
def agree(state, mpi, outcome, kind, length, moves_data):
    """The same without a payload."""
    return agree_with(state, mpi, outcome, kind, length, 0, 0, moves_data)


@routine
def meet(state, mpi, kind, length, detail, moves_data):
    """A whole round without data in the stage; ``moves_data`` if a call of MPI follows."""
    outcome = enter(state, mpi, kind, length, detail)
    if not may_go_on(outcome):
        return outcome
    if leads(mpi):
        outcome = agree(state, mpi, outcome, kind, length, moves_data)
    return hand_out(state, mpi, outcome)
