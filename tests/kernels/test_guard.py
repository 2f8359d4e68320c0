"""A rank that gives up changes no communicator that is in use, has failed, or is closed."""

import pytest
from cobre_kernels.collective.calls import BodyStatus
from cobre_kernels.collective.comm import BROKEN, BUSY, CLOSED, COMM
from cobre_kernels.collective.guard import give_up_kernel
from cobre_kernels.collective.status import INTERRUPTED
from cobre_kernels.machine.record import peek_now, poke_now

FAILURE = 7


@pytest.mark.parametrize("state", [BROKEN, CLOSED, BUSY])
def test_a_rank_that_gives_up_leaves_what_has_failed_or_is_in_use(state):
    """A collective that was interrupted inside a method has already told the other ranks."""
    words = COMM.array(2)
    comm = COMM.of(words)
    comm.failure = FAILURE
    poke_now(comm.guard, state)
    assert give_up_kernel.call(comm.address, *BodyStatus(INTERRUPTED)) == state
    assert (peek_now(comm.guard), comm.failure, comm.node.generation) == (state, FAILURE, 0)
