"""The waiting loop of sockets: spin, yield, block; with deadline, news and signals.

A rank that can move no byte pauses here between two looks. It blocks in poll(2) on what it waits
for and on all control links, so that a death, a failure or a farewell anywhere ends its wait. The
timeout counts from when the last byte moved: a slow link is not a late rank.
"""

from cobre_kernels import layout, libc
from cobre_kernels.collective.status import DISAGREE, INTERRUPTED, LOST_PEER, OK, TIMED_OUT
from cobre_kernels.machine.atomics import cpu_pause, peek, poke
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp import table
from cobre_kernels.tcp.news import (
    NS_PER_MS,
    ROLL_CALL_NS,
    await_news,
    call_roll,
    read_news,
    sweep,
)
from cobre_kernels.tcp.table import is_hub, links_of, record_of
from cobre_kernels.wait import TICK_NS, signal_raised

ANSWER_NS = 200_000_000  # for the answers to a roll call
VERDICT_NS = 500_000_000  # and for the verdict of a rank that is nearer to the late one
ANSWER_POLL_MS = 20
NEWS_PATIENCE_MS = 200  # a broken data link is explained on the control link
SWEEP_EVERY = 256  # steps; what peers may say meanwhile fits any socket's buffer
NOBODY = -1


@routine
def begin_step(state, kind, length, detail):
    """Begin the next step; return its number."""
    links = links_of(state)
    step = peek(state + layout.GENERATION) + 1
    poke(state + layout.GENERATION, step)
    poke(links + table.CALLED, kind)
    poke(links + table.CALLED + 8, length)
    poke(links + table.CALLED + 16, detail)
    poke(links + table.AWAITED_IN, NOBODY)
    poke(links + table.AWAITED_OUT, NOBODY)
    poke(links + table.WANTS_IN, 0)
    poke(links + table.WANTS_OUT, 0)
    poke(links + table.LOOKED_NS, 0)
    note_progress(state)
    if step - peek(links + table.SWEPT) >= SWEEP_EVERY:
        sweep(state, step)
    return step


@routine
def note_progress(state):
    """Bytes have moved: waiting begins anew."""
    links = links_of(state)
    poke(links + table.IDLE_SINCE, 0)
    poke(links + table.OVERDUE_NS, 0)
    poke(state + layout.WAIT_BEGAN_NS, 0)


@routine
def pause(state):
    """Let time pass between two fruitless looks; return OK, or how the wait ended."""
    links, now = links_of(state), libc.monotonic_ns()
    if peek(links + table.IDLE_SINCE) == 0:
        poke(links + table.IDLE_SINCE, now)
    idle_ns = now - peek(links + table.IDLE_SINCE)
    spin_ns = peek(state + layout.SPIN_NS)
    if idle_ns < spin_ns:
        cpu_pause()
        return OK
    if idle_ns < spin_ns + peek(state + layout.YIELD_NS):
        libc.sched_yield()
        return OK
    step = peek(state + layout.GENERATION)
    outcome = _judge(state, step)  # by news that came while this rank was in an earlier step
    return _block(state, step) if outcome == OK else outcome


@routine
def _block(state, step):
    links = links_of(state)
    for begin in (state + layout.WAIT_BEGAN_NS, links + table.LOOKED_NS):
        if peek(begin) == 0:
            poke(begin, libc.monotonic_ns())
    began = peek(state + layout.WAIT_BEGAN_NS)
    timeout_ns = peek(state + layout.TIMEOUT_NS)
    while True:
        data, count = _list_descriptors(state)
        ready = libc.poll(peek(links + table.POLLS), count, _patience_ms(state, began))
        now = libc.monotonic_ns()
        can_move = ready > 0 and _has_events(state, data)
        is_time = now - peek(links + table.LOOKED_NS) >= TICK_NS  # also if bytes move all the time
        if can_move and not is_time:
            return OK
        outcome = _read_all_news(state, step, data) if ready > 0 else OK
        if outcome == OK and (ready <= 0 or is_time):
            poke(links + table.LOOKED_NS, now)
            outcome = INTERRUPTED if signal_raised(state) else OK
        if outcome == OK and can_move:
            return OK
        if outcome == OK and 0 < timeout_ns <= now - began:
            outcome = _overdue(state, now)
        if outcome != OK:
            poke(state + layout.FAILURE_NS, timeout_ns if outcome == TIMED_OUT else now - began)
            return outcome


@routine
def _patience_ms(state, began):
    """How long one poll lasts: a tick, or what is left of the timeout if that is less."""
    if peek(links_of(state) + table.OVERDUE_NS) != 0:
        return ANSWER_POLL_MS
    timeout_ns = peek(state + layout.TIMEOUT_NS)
    left_ns = TICK_NS
    if timeout_ns > 0:
        left_ns = min(TICK_NS, max(began + timeout_ns - libc.monotonic_ns(), 1))
    return -(-left_ns // NS_PER_MS)


@routine
def _list_descriptors(state):
    """Fill the entries for poll: what this rank waits for, then the control links."""
    links = links_of(state)
    entries = peek(links + table.POLLS)
    size = peek(state + layout.COMM_SIZE)
    count = 0
    for rank in range(size):
        record = record_of(state, rank)
        events = 0
        if peek(record + table.FILL) < peek(record + table.WANT):
            events |= libc.POLLIN
        if peek(record + table.HEAD_LEFT) + peek(record + table.BODY_LEFT) > 0:
            events |= libc.POLLOUT
        if events != 0:
            poke(entries + 8 * count, peek(record + table.STAR_FD) | events << 32)
            count += 1
    if peek(links + table.WANTS_IN) != 0:
        poke(entries + 8 * count, peek(links + table.RING_IN) | libc.POLLIN << 32)
        count += 1
    if peek(links + table.WANTS_OUT) != 0:
        poke(entries + 8 * count, peek(links + table.RING_OUT) | libc.POLLOUT << 32)
        count += 1
    data = count
    for rank in range(size):
        fd = peek(record_of(state, rank) + table.CONTROL_FD)
        if fd >= 0:
            poke(entries + 8 * count, fd | libc.POLLIN << 32)
            count += 1
    return data, count


@routine
def _events(state, index):
    return peek(peek(links_of(state) + table.POLLS) + 8 * index) >> 48 & 0xFFFF


@routine
def _has_events(state, count):
    found = 0
    for index in range(count):
        found |= _events(state, index)
    return found != 0


@routine
def _read_all_news(state, step, first):
    """Read the control links that have something; return OK, or what that means for this step."""
    index, began = first, libc.monotonic_ns()
    for rank in range(peek(state + layout.COMM_SIZE)):
        if peek(record_of(state, rank) + table.CONTROL_FD) >= 0:
            if _events(state, index) != 0:
                read_news(state, rank)
                if peek(record_of(state, rank) + table.HEARD_NS) > began:
                    call_roll(state, began)
            index += 1
    return _judge(state, step)


@routine
def _judge(state, step):
    """Return OK, or how this step has failed according to what is known of the others."""
    verdict = _verdict(state, step)
    if verdict != OK:
        return verdict
    lost = False
    for rank in range(peek(state + layout.COMM_SIZE)):
        record = record_of(state, rank)
        reason = peek(record + table.CONDITION)
        if reason != table.MEMBER and peek(record + table.COMPLETED) >= step:
            reason = layout.ARRIVED_IN_TIME  # its part of this step is done
        lost = lost or reason != layout.ARRIVED_IN_TIME
        _give_reason(state, rank, reason)
    return LOST_PEER if lost else OK


@routine
def _verdict(state, step):
    """Adopt what another rank's notice says of this step, or of one before it."""
    links = links_of(state)
    verdict = peek(links + table.VERDICT)
    is_known = verdict in (DISAGREE, TIMED_OUT, LOST_PEER)
    if not is_known or peek(links + table.VERDICT_STEP) > step:
        return OK
    told = peek(links + table.VERDICT_RECORDS)
    for word in range(0, peek(state + layout.COMM_SIZE) * layout.RECORD_BYTES, 8):
        poke(state + layout.RANK_RECORDS + word, peek(told + word))
    poke(state + layout.FAILURE_NS, peek(state + layout.TIMEOUT_NS))  # as if it were our own
    return verdict


@routine
def _give_reason(state, rank, reason):
    poke(state + layout.RANK_RECORDS + rank * layout.RECORD_BYTES + layout.REASON, reason)


@routine
def lost_link(state, rank, reason):
    """Return how the step failed when a data link ended, or carried what it must not.

    The control link tells more: whether the rank has left, has failed, or how all of them did.
    """
    step = peek(state + layout.GENERATION)
    await_news(state, rank, NEWS_PATIENCE_MS)
    outcome = _judge(state, step)
    if outcome == OK:
        record = record_of(state, rank)
        poke(record + table.CONDITION, reason)
        poke(record + table.COMPLETED, 0)
        outcome = _judge(state, step)
    return outcome


@routine
def _overdue(state, now):
    """Call the roll, and then say who is late; OK as long as answers may still come.

    Before the ranks have agreed, nobody can have finished the step: who does not answer is late.
    Later a silent rank may have finished; then only those count that this rank itself waits for,
    unless nobody else tells who it is.
    """
    links = links_of(state)
    since = peek(links + table.OVERDUE_NS)
    if since == 0:
        poke(links + table.OVERDUE_NS, now)
        call_roll(state, now)
        return OK
    if now - since < ANSWER_NS:
        return OK
    awaited_in, awaited_out = peek(links + table.AWAITED_IN), peek(links + table.AWAITED_OUT)
    have_agreed = awaited_in != NOBODY or awaited_out != NOBODY
    is_last_word = now - since >= VERDICT_NS
    late = False
    for rank in range(peek(state + layout.COMM_SIZE)):
        is_awaited = rank in (awaited_in, awaited_out) or _owes(state, rank)
        is_late = _is_silent(state, rank, since)
        if have_agreed or is_hub(state):
            is_late = is_late and is_awaited
        is_late = is_late or (is_last_word and is_awaited)
        late = late or is_late
        _give_reason(state, rank, layout.LATE if is_late else layout.ARRIVED_IN_TIME)
    return TIMED_OUT if late else OK


@routine
def _owes(state, rank):
    """Whether a star link waits for that rank."""
    record = record_of(state, rank)
    unread = peek(record + table.FILL) < peek(record + table.WANT)
    return unread or peek(record + table.HEAD_LEFT) + peek(record + table.BODY_LEFT) > 0


@routine
def _is_silent(state, rank, since):
    """Whether the rank has not told, since about that time, that it waits too."""
    is_other = rank != peek(state + layout.RANK)
    return is_other and peek(record_of(state, rank) + table.HEARD_NS) < since - ROLL_CALL_NS
