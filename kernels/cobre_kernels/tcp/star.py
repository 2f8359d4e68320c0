"""The star: every rank's call, and a small payload, goes to rank 0 and comes back as the result.

Two hops, whatever the number of ranks; two ranks need only one, because each can send its own to
the other at once. Every collective begins here, also one whose payload then takes the ring: the
heads tell whether all ranks have called the same.
"""

from cobre_kernels import layout
from cobre_kernels.collective.guard import leave, leave_broken
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.atomics import peek
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp import table
from cobre_kernels.tcp.news import tell_failed
from cobre_kernels.tcp.shared import transfer
from cobre_kernels.tcp.table import is_hub, links_of
from cobre_kernels.tcp.transfer import expect, say

PAIR = 2  # ranks that need no centre


@routine
def fits_star(state, size_bytes):
    """Whether a payload of so many bytes in all goes through rank 0."""
    return size_bytes <= peek(links_of(state) + table.STAR_BYTES)


@routine
def exchange(state, tag, argument, body, body_bytes, expected_bytes):
    """Of two ranks, send to the other and receive from it at the same time; return a status."""
    other = 1 - peek(state + layout.RANK)
    expect(state, other, tag, argument, expected_bytes)
    say(state, other, tag, argument, body, body_bytes)
    return transfer(state)


@routine
def ask(state, tag, argument, body, body_bytes, reply_tag, reply_bytes):
    """Send to rank 0 and receive its reply; return a status."""
    expect(state, 0, reply_tag, argument, reply_bytes)
    say(state, 0, tag, argument, body, body_bytes)
    return transfer(state)


@routine
def reply(state, tag, argument, body, body_bytes):
    """Send the same to every other rank; return a status."""
    for rank in range(1, peek(state + layout.COMM_SIZE)):
        say(state, rank, tag, argument, body, body_bytes)
    return transfer(state)


@routine
def agree(state, tag, reply_tag):
    """Meet, and compare what all ranks have called; return a status."""
    size = peek(state + layout.COMM_SIZE)
    if size == PAIR:
        return exchange(state, tag, 0, 0, 0, 0)
    if not is_hub(state):
        return ask(state, tag, 0, 0, 0, reply_tag, 0)
    for rank in range(1, size):
        expect(state, rank, tag, 0, 0)
    outcome = transfer(state)
    return reply(state, reply_tag, 0, 0, 0) if outcome == OK else outcome


@routine
def finish(state, outcome, kind):
    """Leave the collective: free for the next one, or broken, with everybody told."""
    if outcome == OK:
        leave(state)
    else:
        tell_failed(state, outcome, kind)
        leave_broken(state, outcome, kind)
    return outcome
