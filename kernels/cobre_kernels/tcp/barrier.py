"""Barrier: heads to rank 0 and back. Also the agreement on other collective calls."""

from cobre_kernels import libc
from cobre_kernels.collective.guard import enter
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.kernel import address_of, kernel
from cobre_kernels.tcp.star import agree, finish
from cobre_kernels.tcp.tags import BARRIER_GO, BARRIER_READY
from cobre_kernels.tcp.wait import begin_step


@kernel(arguments=2)
def synchronise_kernel(state, kind, length):
    """No rank returns before all have entered with the same ``kind`` and ``length``."""
    state = address_of(state)
    outcome = enter(state)
    if outcome != OK:
        return outcome
    thread = libc.release_gil()
    begin_step(state, kind, length, 0)
    outcome = finish(state, agree(state, BARRIER_READY, BARRIER_GO), kind)
    libc.regain_gil(thread)
    return outcome
