"""What the collectives over sockets share: compiled once, and called by address."""

from numba import config

from cobre_kernels import layout
from cobre_kernels.machine.atomics import peek
from cobre_kernels.machine.kernel import call1, call3
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp.transfer import transfer_kernel
from cobre_kernels.tcp.turn import end_turn_kernel

KERNELS = (transfer_kernel, end_turn_kernel)  # in the order of the state's words
TRANSFER = layout.SHARED_KERNELS
END_TURN = layout.SHARED_KERNELS + 8

if config.DISABLE_JIT:
    transfer, end_turn = transfer_kernel.function, end_turn_kernel.function

else:

    @routine
    def transfer(state):
        """Move what is set up on the star; return a status."""
        return call1(peek(state + TRANSFER), state)

    @routine
    def end_turn(state, sent, received):
        """Note what a look at both neighbours has brought; if nothing, wait. Return a status."""
        return call3(peek(state + END_TURN), state, sent, received)
