"""Barrier: one step. Also the fence of a region and the agreement on other collective calls."""

from cobre_kernels.guard import enter
from cobre_kernels.kernel import address_of, kernel
from cobre_kernels.shm.step import finish, synchronise
from cobre_kernels.status import OK


@kernel(arguments=2)
def synchronise_kernel(state, kind, length):
    """No rank returns before all have entered with the same ``kind`` and ``length``.

    Cost: each rank writes one cache line and reads one of every other rank.
    """
    state = address_of(state)
    outcome = enter(state)
    if outcome != OK:
        return outcome
    return finish(state, synchronise(state, kind, length, 0), kind)
