"""Broadcast: through rank 0 if the payload is small, else along the ring from the root."""

from cobre_kernels import layout, libc
from cobre_kernels.arguments import check_broadcast
from cobre_kernels.collective.guard import enter, leave
from cobre_kernels.collective.status import OK
from cobre_kernels.kind import BROADCAST, pack_kind
from cobre_kernels.machine.atomics import peek
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import address_of, kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp import tags
from cobre_kernels.tcp.ring import relay, set_block
from cobre_kernels.tcp.shared import transfer
from cobre_kernels.tcp.star import PAIR, agree, ask, exchange, finish, fits_star
from cobre_kernels.tcp.table import is_hub
from cobre_kernels.tcp.transfer import body_from, expect, say
from cobre_kernels.tcp.wait import begin_step


@kernel(arguments=4)
def broadcast_kernel(state, buffer, size_bytes, dtype, root):
    """The bytes at ``buffer`` become the root's."""
    state = address_of(state)
    outcome = enter(state)
    if outcome != OK:
        return outcome
    outcome = check_broadcast(state, root)
    if outcome != OK:
        leave(state)
        return outcome
    kind = pack_kind(BROADCAST, dtype, root)
    thread = libc.release_gil()
    begin_step(state, kind, size_bytes, size_bytes)
    if not fits_star(state, size_bytes):
        outcome = _around(state, buffer, size_bytes, root)
    elif peek(state + layout.COMM_SIZE) == PAIR or not is_hub(state):
        outcome = _through(state, buffer, size_bytes, root)
    else:
        outcome = _forward(state, buffer, size_bytes, root)
    outcome = finish(state, outcome, kind)
    libc.regain_gil(thread)
    return outcome


@routine
def _around(state, buffer, size_bytes, root):
    outcome = agree(state, tags.BROADCAST, tags.BROADCAST)
    size = peek(state + layout.COMM_SIZE)
    if outcome != OK or size == 1:
        return outcome
    for rank in range(size):
        set_block(state, rank, buffer, size_bytes if rank == root else 0)
    return relay(state, tags.BROADCAST)


@routine
def _through(state, buffer, size_bytes, root):
    """Send to the other end of a star link, or receive from it."""
    rank = peek(state + layout.RANK)
    out_bytes = size_bytes if rank == root else 0
    in_bytes = size_bytes - out_bytes
    if peek(state + layout.COMM_SIZE) == PAIR:
        outcome = exchange(state, tags.BROADCAST, 0, buffer, out_bytes, in_bytes)
        source = 1 - rank
    else:
        outcome = ask(state, tags.BROADCAST, 0, buffer, out_bytes, tags.BROADCAST, in_bytes)
        source = 0
    if outcome == OK and in_bytes > 0:
        move(buffer, body_from(state, source), in_bytes)
    return outcome


@routine
def _forward(state, buffer, size_bytes, root):
    """As rank 0, hear all, and send the root's payload to the others."""
    size = peek(state + layout.COMM_SIZE)
    for rank in range(1, size):
        expect(state, rank, tags.BROADCAST, 0, size_bytes if rank == root else 0)
    outcome = transfer(state)
    if outcome != OK:
        return outcome
    if root != 0 and size_bytes > 0:
        move(buffer, body_from(state, root), size_bytes)
    for rank in range(1, size):
        say(state, rank, tags.BROADCAST, 0, buffer, 0 if rank == root else size_bytes)
    return transfer(state)
