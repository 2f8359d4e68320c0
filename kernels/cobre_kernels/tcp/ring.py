"""The ring: every block goes once around, each rank sending on what it receives.

Rank r sends its own block to r + 1, then the blocks of r - 1, r - 2, ... as they come in, byte by
byte, without waiting for the end of a block. So every link carries each block at most once, all
links are busy at the same time, and a payload that lies on one rank alone (a broadcast) becomes a
pipelined chain. The ranks have agreed on all lengths before.

Sources: the ring allgather of Chan, Heimlich, Purkayastha, van de Geijn, "Collective
communication: theory, practice, and experience", 2007, section 4.3, cut through instead of stored
and forwarded.
"""

from cobre_kernels import layout, libc
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.atomics import peek, poke
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp import frame, table
from cobre_kernels.tcp.news import send_two
from cobre_kernels.tcp.shared import end_turn
from cobre_kernels.tcp.table import links_of
from cobre_kernels.tcp.tags import PREFIX_BYTES
from cobre_kernels.tcp.turn import BUSY, ENDED, GARBLED, IDLE, MOVED
from cobre_kernels.tcp.wait import note_progress

FRAME_BYTES = 2**30  # payload of a frame; a longer one is split
SYSCALL_BYTES = 512 * 1024  # so that sending and receiving take turns

# A cursor. The frame's first bytes are at PREFIX, PREFIX_LEFT of them still to move.
PREFIX = 0
PREFIX_LEFT = 8
FRAME_LEFT = 16  # bytes of payload still to move of the frame
BLOCK = 24  # rank whose block moves
OFFSET = 32  # bytes of it that have moved
DONE = 40  # bytes of payload that have moved in all
TOTAL = 48  # and will have in the end


@routine
def set_block(state, rank, address, count):
    """Tell where the block of a rank is, and how many bytes it has."""
    place = peek(links_of(state) + table.BLOCKS) + 16 * rank
    poke(place, address)
    poke(place + 8, count)


@routine
def _block_bytes(state, rank):
    return peek(peek(links_of(state) + table.BLOCKS) + 16 * rank + 8)


@routine
def _start(state, cursor, block, total):
    poke(cursor + PREFIX_LEFT, 0)
    poke(cursor + FRAME_LEFT, 0)
    poke(cursor + BLOCK, block)
    poke(cursor + OFFSET, 0)
    poke(cursor + DONE, 0)
    poke(cursor + TOTAL, total)


@routine
def relay(state, tag):
    """Move the blocks that are set until every rank has them all; return a status."""
    links, size = links_of(state), peek(state + layout.COMM_SIZE)
    rank = peek(state + layout.RANK)
    following, before = (rank + 1) % size, (rank + size - 1) % size
    everything = 0
    for r in range(size):
        everything += _block_bytes(state, r)
    incoming, outgoing = links + table.CURSOR_IN, links + table.CURSOR_OUT
    own_bytes = _block_bytes(state, rank)
    _start(state, incoming, before, everything - own_bytes)
    _start(state, outgoing, rank, everything - _block_bytes(state, following))
    note_progress(state)
    while True:
        sent = _send(state, outgoing, own_bytes + peek(incoming + DONE), tag)
        received = _receive(state, incoming, tag)
        outcome = end_turn(state, sent, received)
        if outcome != OK or (sent | received) & BUSY == 0:
            return outcome


@routine
def _address(state, cursor, size):
    """Address where the cursor is, after stepping over blocks that have moved."""
    block = peek(cursor + BLOCK)
    while peek(cursor + OFFSET) == _block_bytes(state, block):
        block = (block + size - 1) % size
        poke(cursor + BLOCK, block)
        poke(cursor + OFFSET, 0)
    return peek(peek(links_of(state) + table.BLOCKS) + 16 * block) + peek(cursor + OFFSET)


@routine
def _advance(cursor, count):
    poke(cursor + OFFSET, peek(cursor + OFFSET) + count)
    poke(cursor + DONE, peek(cursor + DONE) + count)
    poke(cursor + FRAME_LEFT, peek(cursor + FRAME_LEFT) - count)


@routine
def _send(state, cursor, available, tag):
    """Send what there is, up to so many bytes of payload in all; return what happened."""
    links = links_of(state)
    poke(links + table.WANTS_OUT, 0)
    left = peek(cursor + TOTAL) - peek(cursor + DONE)
    if left == 0:
        return IDLE
    if available == peek(cursor + DONE):
        return BUSY
    if peek(cursor + FRAME_LEFT) == 0:
        poke(cursor + FRAME_LEFT, min(left, FRAME_BYTES))
        frame.write_prefix(cursor + PREFIX, tag, peek(cursor + FRAME_LEFT))
        poke(cursor + PREFIX_LEFT, PREFIX_BYTES)
    body = _address(state, cursor, peek(state + layout.COMM_SIZE))
    count = _block_bytes(state, peek(cursor + BLOCK)) - peek(cursor + OFFSET)
    count = min(count, peek(cursor + FRAME_LEFT), available - peek(cursor + DONE), SYSCALL_BYTES)
    prefix_left = peek(cursor + PREFIX_LEFT)
    prefix = cursor + PREFIX + PREFIX_BYTES - prefix_left
    sent = send_two(state, peek(links + table.RING_OUT), prefix, prefix_left, body, count)
    if sent < 0:
        poke(links + table.WANTS_OUT, 1)
        return BUSY if sent == -libc.EAGAIN or sent == -libc.EINTR else ENDED
    of_prefix = min(sent, prefix_left)
    poke(cursor + PREFIX_LEFT, prefix_left - of_prefix)
    _advance(cursor, sent - of_prefix)
    return MOVED | (BUSY if sent - of_prefix < left else IDLE)


@routine
def _receive(state, cursor, tag):
    """Receive what is there; return what happened."""
    links = links_of(state)
    poke(links + table.WANTS_IN, 1)
    left = peek(cursor + TOTAL) - peek(cursor + DONE)
    if left == 0:
        poke(links + table.WANTS_IN, 0)
        return IDLE
    fd = peek(links + table.RING_IN)
    if peek(cursor + FRAME_LEFT) == 0:
        outcome = receive_prefix(fd, cursor)
        if outcome != IDLE:
            return outcome
        if not frame.is_prefix(cursor + PREFIX, tag, min(left, FRAME_BYTES)):
            return GARBLED
        poke(cursor + FRAME_LEFT, min(left, FRAME_BYTES))
    body = _address(state, cursor, peek(state + layout.COMM_SIZE))
    count = _block_bytes(state, peek(cursor + BLOCK)) - peek(cursor + OFFSET)
    got = libc.receive(fd, body, min(count, peek(cursor + FRAME_LEFT), SYSCALL_BYTES))
    if got <= 0:
        return BUSY if got == -libc.EAGAIN or got == -libc.EINTR else ENDED
    _advance(cursor, got)
    return MOVED | (BUSY if got < left else IDLE)


@routine
def receive_prefix(fd, cursor):
    """Receive the first bytes of a frame; IDLE once they are all here."""
    left = peek(cursor + PREFIX_LEFT)
    if left == 0:
        left = PREFIX_BYTES
    got = libc.receive(fd, cursor + PREFIX + PREFIX_BYTES - left, left)
    if got <= 0:
        poke(cursor + PREFIX_LEFT, left)
        return BUSY if got == -libc.EAGAIN or got == -libc.EINTR else ENDED
    poke(cursor + PREFIX_LEFT, left - got)
    return IDLE if got == left else MOVED | BUSY
