"""Control links: who waits where, who has left, what has failed.

Between every two ranks there is a link that carries nothing else. Its frames are small and rare:
WAITING from a rank whose timeout is over, and as the answer from whoever waits in the same step,
so that all know who is there; SHUTDOWN from a rank that closes; FAILURE from one whose collective
failed. The end of a stream without either is the death of its process.
"""

from cobre_kernels import layout, libc
from cobre_kernels.collective.status import DISAGREE, INTERRUPTED, OK
from cobre_kernels.machine.atomics import peek, poke, swap_bytes
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp import frame, table
from cobre_kernels.tcp.table import links_of, record_of
from cobre_kernels.tcp.tags import FAILURE, SHUTDOWN, WAITING

SEND_PATIENCE_MS = 100  # for a notice that does not fit the socket's buffer
READ_PATIENCE_MS = 1000  # for the rest of a notice that has begun to come
NS_PER_MS = 1_000_000
ROLL_CALL_NS = 50_000_000  # an answer to an answer would never end


@routine
def call_roll(state, now):
    """Tell all others that this rank waits in its step; not again within ROLL_CALL_NS."""
    links = links_of(state)
    if now - peek(links + table.ROLL_CALLED_NS) < ROLL_CALL_NS:
        return
    poke(links + table.ROLL_CALLED_NS, now)
    notice = links + table.NOTICE
    frame.write_control(notice, WAITING, 0, peek(state + layout.GENERATION), 0, 0, 0)
    tell_all(state, notice + frame.CONTROL_OFFSET, frame.CONTROL_BYTES)


@routine
def tell_left(state):
    """Tell all others that this rank closes, and the last step that it has completed."""
    notice = links_of(state) + table.NOTICE
    frame.write_control(notice, SHUTDOWN, 0, peek(state + layout.GENERATION), 0, 0, 0)
    tell_all(state, notice + frame.CONTROL_OFFSET, frame.CONTROL_BYTES)


@routine
def tell_failed(state, outcome, kind):
    """Tell all others that this step failed here, and why, so that none takes this rank for lost.

    That is, at a disagreement, what every rank called, and else who is lost or did not come. It is
    passed on also by those who were told themselves: nobody knows whose notice is read first.
    """
    links, size = links_of(state), peek(state + layout.COMM_SIZE)
    words = 4 if outcome == DISAGREE else 0 if outcome == INTERRUPTED else 1
    notice = peek(links + table.BULLETIN)
    step = peek(state + layout.GENERATION)
    frame.write_control(notice, FAILURE, 8 * words * size, step, outcome, kind, words)
    place = notice + frame.HEAD_BYTES
    for rank in range(size):
        record = state + layout.RANK_RECORDS + rank * layout.RECORD_BYTES
        for word in range(words):
            poke(place, swap_bytes(peek(record + 8 * word)))
            place += 8
    tell_all(state, notice + frame.CONTROL_OFFSET, frame.CONTROL_BYTES + 8 * words * size)


@routine
def tell_all(state, address, count):
    """Send the same bytes to every rank that is still there."""
    for rank in range(peek(state + layout.COMM_SIZE)):
        fd = peek(record_of(state, rank) + table.CONTROL_FD)
        if fd >= 0:
            _tell(state, fd, address, count)


@routine
def _tell(state, fd, address, count):
    """Send all of it, or nothing more: after a partial frame the link is only good for its end."""
    while count > 0:
        sent = send_bytes(state, fd, address, count)
        if sent == -libc.EAGAIN:
            sent = 0 if _becomes(state, fd, libc.POLLOUT, SEND_PATIENCE_MS) else -1
        elif sent == -libc.EINTR:
            sent = 0
        if sent < 0:
            return
        address += sent
        count -= sent


@routine
def _becomes(state, fd, events, patience_ms):
    """Wait for one descriptor."""
    entry = links_of(state) + table.LONE_POLL
    poke(entry, fd | events << 32)
    return libc.poll(entry, 1, patience_ms) > 0


@routine
def send_bytes(state, fd, address, count):
    """Send from one place; return how many bytes were taken, or -errno."""
    return send_two(state, fd, address, count, 0, 0)


@routine
def send_two(state, fd, first, first_bytes, second, second_bytes):
    """Send from two places, one after the other; return how many bytes were taken, or -errno."""
    message = links_of(state) + table.MESSAGE
    vectors = message + 7 * 8  # struct msghdr: 7 words here and on macOS
    at = vectors
    if first_bytes > 0:
        poke(at, first)
        poke(at + 8, first_bytes)
        at += 16
    if second_bytes > 0:
        poke(at, second)
        poke(at + 8, second_bytes)
        at += 16
    poke(message + 16, vectors)
    poke(message + 24, (at - vectors) // 16)
    return libc.send_message(fd, message)


@routine
def await_news(state, rank, patience_ms):
    """Read what a rank has to say; wait a little until it has said how it ended."""
    record = record_of(state, rank)
    now = libc.monotonic_ns()
    until = now + patience_ms * NS_PER_MS
    read_news(state, rank)
    while peek(record + table.CONDITION) == table.MEMBER and now < until:
        left_ms = -(-(until - now) // NS_PER_MS)
        _becomes(state, peek(record + table.CONTROL_FD), libc.POLLIN, left_ms)
        read_news(state, rank)
        now = libc.monotonic_ns()


@routine
def sweep(state, step):
    """Read all control links, in case nothing has made this rank look for long."""
    poke(links_of(state) + table.SWEPT, step)
    for rank in range(peek(state + layout.COMM_SIZE)):
        read_news(state, rank)


@routine
def read_news(state, rank):
    """Read what a rank has to say; afterwards its record tells."""
    record = record_of(state, rank)
    while peek(record + table.CONTROL_FD) >= 0:
        fd, fill = peek(record + table.CONTROL_FD), peek(record + table.NEWS_FILL)
        place = record + table.NEWS + frame.CONTROL_OFFSET + fill
        got = libc.receive(fd, place, frame.CONTROL_BYTES - fill)
        if got == -libc.EAGAIN or got == -libc.EINTR:
            return
        if got <= 0:
            _stream_ended(record, got)
        elif fill + got < frame.CONTROL_BYTES:
            poke(record + table.NEWS_FILL, fill + got)
        else:
            poke(record + table.NEWS_FILL, 0)
            _take(state, record)


@routine
def _stream_ended(record, result):
    poke(record + table.CONTROL_FD, -1)
    if peek(record + table.CONDITION) == table.MEMBER:
        no_answer = result in (-libc.ETIMEDOUT, -libc.EHOSTUNREACH)
        poke(record + table.CONDITION, layout.UNREACHABLE if no_answer else layout.DIED)


@routine
def _take(state, record):
    news = record + table.NEWS
    tag = frame.control_tag(news)
    theirs = frame.word_at(news + frame.STEP)
    if tag == WAITING:  # also in an earlier step, for somebody else: it is not the late one
        poke(record + table.HEARD_NS, libc.monotonic_ns())
    elif tag == SHUTDOWN:
        poke(record + table.CONDITION, layout.LEFT)
        poke(record + table.COMPLETED, theirs)
    elif tag == FAILURE:
        poke(record + table.CONDITION, layout.GAVE_UP)
        poke(record + table.COMPLETED, theirs - 1)
        _take_verdict(state, record, theirs)
    else:
        poke(record + table.CONDITION, layout.GARBLED)
        poke(record + table.CONTROL_FD, -1)


@routine
def _take_verdict(state, record, theirs):
    """Read the table that follows a notice of failure; keep the one of the earliest step."""
    links, size = links_of(state), peek(state + layout.COMM_SIZE)
    words = frame.word_at(record + table.NEWS + frame.DETAIL)
    if words == 0:
        return
    bulletin = peek(links + table.BULLETIN)
    complete = 0 < words <= 4 and _read_rest(state, record, bulletin, 8 * words * size)
    if not complete:
        poke(record + table.CONDITION, layout.GARBLED)
        poke(record + table.CONTROL_FD, -1)
        return
    if peek(links + table.VERDICT) != OK and peek(links + table.VERDICT_STEP) <= theirs:
        return
    poke(links + table.VERDICT, frame.word_at(record + table.NEWS + frame.KIND))
    poke(links + table.VERDICT_STEP, theirs)
    for rank in range(size):
        target = peek(links + table.VERDICT_RECORDS) + rank * layout.RECORD_BYTES
        for word in range(words):
            poke(target + 8 * word, frame.word_at(bulletin))
            bulletin += 8


@routine
def _read_rest(state, record, place, count):
    fd = peek(record + table.CONTROL_FD)
    while count > 0:
        got = libc.receive(fd, place, count)
        if got == -libc.EAGAIN:
            got = 0 if _becomes(state, fd, libc.POLLIN, READ_PATIENCE_MS) else -1
        elif got == -libc.EINTR:
            got = 0
        elif got == 0:
            got = -1
        if got < 0:
            return False
        place += got
        count -= got
    return True
