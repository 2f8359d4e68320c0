"""Messages on the star: say, expect, and move them all at once.

A rank sets up what it sends to and what it expects from each of its partners; then one loop moves
bytes on whatever link is ready, so that the slowest link sets the time and not their sum. A
message comes into the partner's inbox, head first; what it says is compared with this rank's call
before its payload is believed.
"""

from cobre_kernels import layout, libc
from cobre_kernels.collective.status import DISAGREE, OK
from cobre_kernels.machine.atomics import peek, poke
from cobre_kernels.machine.kernel import address_of, kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp import frame, table
from cobre_kernels.tcp.news import send_two
from cobre_kernels.tcp.table import links_of, record_of, spokes
from cobre_kernels.tcp.wait import lost_link, note_progress, pause

IDLE, BUSY = 0, 1  # of a pass over the links: all moved, or some still to move
MOVED = 2  # added to them if bytes did move


@routine
def say(state, rank, tag, argument, body, body_bytes):
    """Set up a message with this rank's call, and a payload, to send to ``rank``."""
    record, called = record_of(state, rank), links_of(state) + table.CALLED
    frame.write_head(
        record + table.HEAD,
        tag,
        argument,
        peek(state + layout.GENERATION),
        peek(called),
        peek(called + 8),
        peek(called + 16),
        body_bytes,
    )
    poke(record + table.HEAD_LEFT, frame.HEAD_BYTES)
    poke(record + table.BODY, body)
    poke(record + table.BODY_LEFT, body_bytes)


@routine
def expect(state, rank, tag, argument, body_bytes):
    """Set up the receipt of a message from ``rank`` with so many bytes of payload."""
    record = record_of(state, rank)
    poke(record + table.FIRST_WORD, frame.first_word(tag, argument, body_bytes))
    poke(record + table.FILL, 0)
    poke(record + table.WANT, frame.HEAD_BYTES + body_bytes)
    poke(record + table.VIEW, table.UNREAD)


@routine
def body_from(state, rank):
    """Address of the payload that has come from ``rank``."""
    return peek(record_of(state, rank) + table.INBOX) + frame.HEAD_BYTES


@kernel(arguments=0)
def transfer_kernel(state):
    """See :func:`cobre_kernels.tcp.shared.transfer`."""
    return _transfer(address_of(state))


@routine
def _transfer(state):
    """Move what is set up; return OK, DISAGREE once every partner has told its call, or worse."""
    first, end = spokes(state)
    while True:
        activity = IDLE
        for rank in range(first, end):
            record = record_of(state, rank)
            outcome = _send(state, record)
            if outcome >= 0:
                activity |= outcome
                outcome = _receive(state, record)
                activity |= max(outcome, 0)
            if outcome < 0:
                reason = layout.GARBLED if outcome == GARBLED else layout.DIED
                return lost_link(state, rank, reason)
        if activity & MOVED:
            note_progress(state)
        if activity & BUSY == 0:
            return _common_view(state, first, end)
        if activity & MOVED == 0:
            outcome = pause(state)
            if outcome != OK:
                return outcome


ENDED, GARBLED = -1, -2


@routine
def _send(state, record):
    head_left, body_left = peek(record + table.HEAD_LEFT), peek(record + table.BODY_LEFT)
    if head_left + body_left == 0:
        return IDLE
    head = record + table.HEAD + frame.HEAD_BYTES - head_left
    body, fd = peek(record + table.BODY), peek(record + table.STAR_FD)
    sent = send_two(state, fd, head, head_left, body, body_left)
    if sent < 0:
        return BUSY if sent == -libc.EAGAIN or sent == -libc.EINTR else ENDED
    of_head = min(sent, head_left)
    of_body = sent - of_head
    poke(record + table.HEAD_LEFT, head_left - of_head)
    poke(record + table.BODY, body + of_body)
    poke(record + table.BODY_LEFT, body_left - of_body)
    return MOVED | (BUSY if sent < head_left + body_left else IDLE)


@routine
def _receive(state, record):
    fill, want = peek(record + table.FILL), peek(record + table.WANT)
    if fill == want:
        return IDLE
    got = libc.receive(peek(record + table.STAR_FD), peek(record + table.INBOX) + fill, want - fill)
    if got <= 0:
        return BUSY if got == -libc.EAGAIN or got == -libc.EINTR else ENDED
    fill += got
    poke(record + table.FILL, fill)
    if fill >= frame.HEAD_BYTES and peek(record + table.VIEW) == table.UNREAD:
        view = _compare(state, record)
        if view == GARBLED:
            return GARBLED
        poke(record + table.VIEW, view)
        if view == table.DISAGREES:  # whatever follows will not be read, neither here nor there
            poke(record + table.WANT, fill)
            poke(record + table.BODY_LEFT, 0)
            return MOVED
    return MOVED | (BUSY if fill < want else IDLE)


@routine
def _compare(state, record):
    """Compare the head that has come with what this rank called."""
    head, called = peek(record + table.INBOX), links_of(state) + table.CALLED
    if frame.word_at(head + frame.STEP) != peek(state + layout.GENERATION):
        return GARBLED
    if frame.word_at(head + frame.KIND) != peek(called):
        return table.DISAGREES
    if frame.word_at(head + frame.LENGTH) != peek(called + 8):
        return table.DISAGREES
    return table.AGREES if peek(head) == peek(record + table.FIRST_WORD) else GARBLED


@routine
def _common_view(state, first, end):
    """Return OK, or DISAGREE with every partner's call on record."""
    agree = True
    for rank in range(first, end):
        agree = agree and peek(record_of(state, rank) + table.VIEW) != table.DISAGREES
    if agree:
        return OK
    called = links_of(state) + table.CALLED
    _record(state, peek(state + layout.RANK), peek(called), peek(called + 8), peek(called + 16))
    for rank in range(first, end):
        head = peek(record_of(state, rank) + table.INBOX)
        kind, length = frame.word_at(head + frame.KIND), frame.word_at(head + frame.LENGTH)
        _record(state, rank, kind, length, frame.word_at(head + frame.DETAIL))
    return DISAGREE


@routine
def _record(state, rank, kind, length, detail):
    record = state + layout.RANK_RECORDS + rank * layout.RECORD_BYTES
    poke(record + layout.REASON, layout.ARRIVED_IN_TIME)
    poke(record + layout.RECORD_KIND, kind)
    poke(record + layout.RECORD_LENGTH, length)
    poke(record + layout.RECORD_DETAIL, detail)
