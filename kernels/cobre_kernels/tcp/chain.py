"""The chain: a large reduction in rank order, chunk after chunk.

Rank 0 sends its chunk to rank 1, which folds its own into it and sends on what comes out, and so
on: the last rank has the fold of all in rank order. From there results go around the ring. Chunks
follow each other without a pause, so a link carries each byte at most twice and all links are busy
at the same time; each rank folds each of its chunks once.

Two ranks are no chain: each sends all of its own to the other, and both fold, rank 0's first.

A ring reduce-scatter would carry a little less, but would begin the fold of each stripe at another
rank: other bits than everywhere else.
"""

from cobre_kernels import layout, libc
from cobre_kernels.collective.fold import fold
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.atomics import peek, poke
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp import frame, table
from cobre_kernels.tcp.news import send_two
from cobre_kernels.tcp.ring import FRAME_LEFT, PREFIX, PREFIX_LEFT, receive_prefix
from cobre_kernels.tcp.shared import end_turn
from cobre_kernels.tcp.table import links_of
from cobre_kernels.tcp.tags import ALLREDUCE_RECV, ALLREDUCE_SEND, PREFIX_BYTES
from cobre_kernels.tcp.turn import BUSY, ENDED, GARBLED, IDLE, MOVED
from cobre_kernels.tcp.wait import note_progress

CHUNKS_WANTED = 4  # of one payload: the ranks work at the same time, with few system calls
SMALLEST_CHUNK = 128 * 1024

# A cursor continues after PREFIX, PREFIX_LEFT and FRAME_LEFT of ring.py with:
PLACE = 24  # address of the next byte of the frame
IS_RESULT = 32  # whether the frame is a result, or else a partial fold
PARTIALS = 40  # chunks of partial folds that have moved
RESULTS = 48  # chunks of results that have; of two ranks, chunks folded
PAIR = 2


@routine
def chunk_bytes(size_bytes):
    """Bytes of a chunk of such a payload, the same on all ranks."""
    wanted = -(-size_bytes // CHUNKS_WANTED // layout.LINE_BYTES) * layout.LINE_BYTES
    return min(max(wanted, SMALLEST_CHUNK), table.CHUNK_BYTES)


@routine
def _start(cursor):
    for word in range(PREFIX_LEFT, RESULTS + 8, 8):
        poke(cursor + word, 0)


@routine
def reduce_along(state, send, recv, size_bytes, itemsize, dtype, op):
    """Fold ``send`` of all ranks into ``recv``; return a status."""
    links, size = links_of(state), peek(state + layout.COMM_SIZE)
    _start(links + table.CURSOR_IN)
    _start(links + table.CURSOR_OUT)
    note_progress(state)
    while True:
        sent = _send(state, send, recv, size_bytes)
        received = _receive(state, send, recv, size_bytes, itemsize, dtype, op)
        outcome = end_turn(state, sent, received)
        if outcome != OK or (sent | received) & BUSY == 0:
            return outcome
        if size == PAIR:
            _fold_pair(state, send, recv, size_bytes, itemsize, dtype, op)


@routine
def _stage(state, chunk):
    """Address where a chunk's partial fold is staged."""
    return peek(links_of(state) + table.STAGING) + chunk % table.STAGES * table.CHUNK_BYTES


@routine
def _send(state, send, recv, size_bytes):
    """Go on with the frame that goes out, or begin the next one; return what happened."""
    links = links_of(state)
    cursor = links + table.CURSOR_OUT
    poke(links + table.WANTS_OUT, 0)
    if peek(cursor + FRAME_LEFT) == 0:
        outcome = _choose(state, cursor, send, recv, size_bytes)
        if outcome != MOVED:
            return outcome
    prefix_left = peek(cursor + PREFIX_LEFT)
    prefix = cursor + PREFIX + PREFIX_BYTES - prefix_left
    place, left = peek(cursor + PLACE), peek(cursor + FRAME_LEFT)
    sent = send_two(state, peek(links + table.RING_OUT), prefix, prefix_left, place, left)
    if sent < 0:
        poke(links + table.WANTS_OUT, 1)
        return BUSY if sent == -libc.EAGAIN or sent == -libc.EINTR else ENDED
    of_prefix = min(sent, prefix_left)
    poke(cursor + PREFIX_LEFT, prefix_left - of_prefix)
    poke(cursor + PLACE, place + sent - of_prefix)
    poke(cursor + FRAME_LEFT, left - sent + of_prefix)
    if left == sent - of_prefix:
        count = RESULTS if peek(cursor + IS_RESULT) else PARTIALS
        poke(cursor + count, peek(cursor + count) + 1)
    return MOVED | BUSY


@routine
def _choose(state, cursor, send, recv, size_bytes):
    """Begin the next frame, a result first; BUSY if none is ready, IDLE if all are sent."""
    incoming = links_of(state) + table.CURSOR_IN
    last = peek(state + layout.COMM_SIZE) - 1
    rank = peek(state + layout.RANK)
    chunk = chunk_bytes(size_bytes)
    chunks = -(-size_bytes // chunk)
    results, partials = peek(cursor + RESULTS), peek(cursor + PARTIALS)
    is_pair = last + 1 == PAIR
    is_source = rank == 0 or is_pair
    sends_results, sends_partials = rank + 1 != last and not is_pair, rank != last or is_pair
    if sends_results and results < peek(incoming + RESULTS):
        begin, place = results * chunk, recv + results * chunk
        is_result = 1
    elif sends_partials and partials < (chunks if is_source else peek(incoming + PARTIALS)):
        begin = partials * chunk
        place = send + begin if is_source else _stage(state, partials)
        is_result = 0
    else:
        done = (not sends_results or results == chunks) and (
            not sends_partials or partials == chunks
        )
        return IDLE if done else BUSY
    length = min(chunk, size_bytes - begin)
    frame.write_prefix(cursor + PREFIX, ALLREDUCE_RECV if is_result else ALLREDUCE_SEND, length)
    poke(cursor + PREFIX_LEFT, PREFIX_BYTES)
    poke(cursor + FRAME_LEFT, length)
    poke(cursor + PLACE, place)
    poke(cursor + IS_RESULT, is_result)
    return MOVED


@routine
def _receive(state, send, recv, size_bytes, itemsize, dtype, op):
    """Go on with the frame that comes in; fold it when it is complete; return what happened."""
    links = links_of(state)
    cursor = links + table.CURSOR_IN
    chunk = chunk_bytes(size_bytes)
    chunks = -(-size_bytes // chunk)
    poke(links + table.WANTS_IN, 0)
    is_first, is_last = _ends(state)
    partials_done = is_first or peek(cursor + PARTIALS) == chunks
    if partials_done and (is_last or peek(cursor + RESULTS) == chunks):
        return IDLE
    if partials_done and peek(state + layout.COMM_SIZE) == PAIR:
        return BUSY  # only the fold is left, which waits for this rank's own to be sent
    fd = peek(links + table.RING_IN)
    if peek(cursor + FRAME_LEFT) == 0:
        outcome = _begin_frame(state, fd, cursor, recv, size_bytes)
        if outcome != MOVED:
            return outcome
    place = peek(cursor + PLACE)
    if peek(cursor + IS_RESULT) == 0 and not _stage_is_free(state, is_last):
        return BUSY
    poke(links + table.WANTS_IN, 1)
    left = peek(cursor + FRAME_LEFT)
    got = libc.receive(fd, place, left)
    if got <= 0:
        return BUSY if got == -libc.EAGAIN or got == -libc.EINTR else ENDED
    poke(cursor + PLACE, place + got)
    poke(cursor + FRAME_LEFT, left - got)
    if got == left:
        _finish_frame(state, cursor, send, recv, size_bytes, itemsize, dtype, op)
    return MOVED | BUSY


@routine
def _ends(state):
    """Whether this rank begins the chain, and whether it ends it; of two ranks neither does."""
    rank, size = peek(state + layout.RANK), peek(state + layout.COMM_SIZE)
    return rank == 0 and size != PAIR, rank == size - 1 and size != PAIR


@routine
def _stage_is_free(state, is_last):
    """Whether what was staged in the next partial fold's place has been sent on, or folded."""
    links = links_of(state)
    used = links + table.CURSOR_OUT + PARTIALS
    if peek(state + layout.COMM_SIZE) == PAIR:
        used = links + table.CURSOR_IN + RESULTS
    staged = peek(links + table.CURSOR_IN + PARTIALS) - peek(used)
    return is_last or staged < table.STAGES


@routine
def _begin_frame(state, fd, cursor, recv, size_bytes):
    """Read what kind of frame comes next: MOVED once its place is known."""
    poke(links_of(state) + table.WANTS_IN, 1)
    outcome = receive_prefix(fd, cursor)
    if outcome != IDLE:
        return outcome
    chunk = chunk_bytes(size_bytes)
    is_result = frame.prefix_tag(cursor + PREFIX) == ALLREDUCE_RECV
    number = peek(cursor + RESULTS) if is_result else peek(cursor + PARTIALS)
    length = min(chunk, size_bytes - number * chunk)
    tag = ALLREDUCE_RECV if is_result else ALLREDUCE_SEND
    is_first, is_last = _ends(state)
    is_barred = is_result and peek(state + layout.COMM_SIZE) == PAIR
    is_barred = is_barred or (is_last if is_result else is_first)
    if length <= 0 or is_barred or not frame.is_prefix(cursor + PREFIX, tag, length):
        return GARBLED
    poke(cursor + FRAME_LEFT, length)
    poke(cursor + IS_RESULT, 1 if is_result else 0)
    poke(cursor + PLACE, recv + number * chunk if is_result else _stage(state, number))
    poke(links_of(state) + table.WANTS_IN, 0)
    return MOVED


@routine
def _finish_frame(state, cursor, send, recv, size_bytes, itemsize, dtype, op):
    """Count a chunk that has come in; fold this rank's own into it if it is a partial fold."""
    if peek(cursor + IS_RESULT):
        poke(cursor + RESULTS, peek(cursor + RESULTS) + 1)
        return
    number = peek(cursor + PARTIALS)
    if peek(state + layout.COMM_SIZE) == PAIR:
        poke(cursor + PARTIALS, number + 1)
        return
    begin = number * chunk_bytes(size_bytes)
    length = min(chunk_bytes(size_bytes), size_bytes - begin)
    partial = _stage(state, number)
    fold(state, dtype, op, partial, send + begin, length // itemsize)
    poke(cursor + PARTIALS, number + 1)
    if peek(state + layout.RANK) == peek(state + layout.COMM_SIZE) - 1:
        move(recv + begin, partial, length)
        poke(cursor + RESULTS, number + 1)


@routine
def _fold_pair(state, send, recv, size_bytes, itemsize, dtype, op):
    """Of two ranks, fold the chunks that have come; ``recv`` may be what is still to be sent."""
    links = links_of(state)
    cursor = links + table.CURSOR_IN
    chunk = chunk_bytes(size_bytes)
    ready = min(peek(cursor + PARTIALS), peek(links + table.CURSOR_OUT + PARTIALS))
    for number in range(peek(cursor + RESULTS), ready):
        begin, theirs = number * chunk, _stage(state, number)
        length = min(chunk, size_bytes - begin)
        if peek(state + layout.RANK) == 0:
            if send != recv:
                move(recv + begin, send + begin, length)
            fold(state, dtype, op, recv + begin, theirs, length // itemsize)
        else:
            fold(state, dtype, op, theirs, send + begin, length // itemsize)
            move(recv + begin, theirs, length)
    poke(cursor + RESULTS, max(ready, peek(cursor + RESULTS)))
