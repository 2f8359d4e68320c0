"""Turns of the ring and of the chain: what a look at both neighbours has brought, and the wait."""

from cobre_kernels import layout
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.atomics import peek, poke
from cobre_kernels.machine.kernel import address_of, kernel
from cobre_kernels.tcp import table
from cobre_kernels.tcp.table import links_of
from cobre_kernels.tcp.wait import NOBODY, lost_link, note_progress, pause

# What a look at one neighbour has brought.
IDLE, BUSY, MOVED, ENDED, GARBLED = 0, 1, 2, -1, -2


@kernel(arguments=2)
def end_turn_kernel(state, sent, received):
    """See :func:`cobre_kernels.tcp.shared.end_turn`."""
    state = address_of(state)
    links, size = links_of(state), peek(state + layout.COMM_SIZE)
    rank = peek(state + layout.RANK)
    following, before = (rank + 1) % size, (rank + size - 1) % size
    poke(links + table.AWAITED_OUT, following if sent & BUSY else NOBODY)
    poke(links + table.AWAITED_IN, before if received & BUSY else NOBODY)
    if sent < 0:
        return lost_link(state, following, layout.DIED)
    if received < 0:
        reason = layout.GARBLED if received == GARBLED else layout.DIED
        return lost_link(state, before, reason)
    if (sent | received) & MOVED:
        note_progress(state)
    elif (sent | received) & BUSY:
        return pause(state)
    return OK
