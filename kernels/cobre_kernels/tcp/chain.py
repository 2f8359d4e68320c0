"""The chain: a large reduction in rank order, chunk after chunk.

Rank 0 sends its chunk to rank 1, which folds its own into it and sends on what comes out, and so
on: the last rank has the fold of all in rank order. From there results go around the ring. Chunks
follow each other without a pause, so a link carries each byte at most twice and all links are busy
at the same time; each rank folds each of its chunks once.

Two ranks are no chain: each sends all of its own to the other, and both fold, rank 0's first.

A ring reduce-scatter would carry a little less, but would begin the fold of each stripe at another
rank: other bits than everywhere else.
"""

from cobre_kernels.collective.fold import fold
from cobre_kernels.collective.status import OK
from cobre_kernels.machine import libc
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.record import LINE_BYTES
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp import frame
from cobre_kernels.tcp.links import CHUNK_BYTES, STAGING_CHUNKS, is_coordinator
from cobre_kernels.tcp.progress.neighbours import advance, receive_prefix, send_frame
from cobre_kernels.tcp.progress.pause import note_progress
from cobre_kernels.tcp.progress.sockets import BUSY, GARBLED, IDLE, MOVED, without_bytes
from cobre_kernels.tcp.star import PAIR
from cobre_kernels.tcp.tags import ALLREDUCE_RECV, ALLREDUCE_SEND

CHUNKS_WANTED = 4  # of one payload: the ranks work at the same time, with few system calls
SMALLEST_CHUNK = 128 * 1024


@routine
def reduce_along_chain(comm, call):
    """Fold ``send`` of all ranks into ``recv``; return a status."""
    _start(comm)
    while True:
        sent = _send(comm, call)
        received = _receive(comm, call)
        outcome = advance(comm, sent, received)
        if outcome != OK or (sent | received) & BUSY == 0:
            return outcome
        if comm.size == PAIR:
            _fold_pair(comm, call)


@routine
def _start(comm):
    """Set what moves: partial folds up to the last rank, results from there to its last but one."""
    links, last = comm.links, comm.size - 1
    wanted = -(-comm.length // CHUNKS_WANTED // LINE_BYTES) * LINE_BYTES
    links.chunk_bytes = min(max(wanted, SMALLEST_CHUNK), CHUNK_BYTES)
    chunks = -(-comm.length // links.chunk_bytes)
    is_pair = comm.size == PAIR
    sends_partials, receives_partials = is_pair or comm.rank != last, is_pair or comm.rank != 0
    sends_results = not is_pair and comm.rank != last - 1
    receives_results = not is_pair and comm.rank != last
    _start_cursor(links.outgoing, sends_partials * chunks, sends_results * chunks)
    _start_cursor(links.incoming, receives_partials * chunks, receives_results * chunks)
    note_progress(comm)


@routine
def _start_cursor(cursor, partials_total, results_total):
    cursor.prefix_left = 0
    cursor.frame_left = 0
    cursor.partials = 0
    cursor.partials_total = partials_total
    cursor.results = 0
    cursor.results_total = results_total


@routine
def _bytes_of(comm, chunk):
    """Return the length of a chunk; the last one may be shorter."""
    return min(comm.links.chunk_bytes, comm.length - chunk * comm.links.chunk_bytes)


@routine
def _staged(comm, chunk):
    """Return the address where a chunk's partial fold is staged."""
    return comm.links.staging + chunk % STAGING_CHUNKS * CHUNK_BYTES


@routine
def _send(comm, call):
    """Go on with the frame that goes out, or begin the next one; return what happened."""
    cursor = comm.links.outgoing
    comm.links.wants_out = 0
    if cursor.frame_left == 0:
        outcome = _choose(comm, call)
        if outcome != MOVED:
            return outcome
    sent = send_frame(comm, cursor.next_byte, cursor.frame_left)
    if sent < 0:
        return without_bytes(sent)
    cursor.next_byte += sent
    if cursor.frame_left == 0:
        cursor.results += cursor.is_result
        cursor.partials += 1 - cursor.is_result
    return MOVED | BUSY


@routine
def _choose(comm, call):
    """Begin the next frame, a result first; BUSY if none is ready, IDLE if all are sent."""
    links, cursor, incoming = comm.links, comm.links.outgoing, comm.links.incoming
    partials, results = cursor.partials, cursor.results
    is_source = is_coordinator(comm) or comm.size == PAIR
    folded = cursor.partials_total if is_source else incoming.partials
    if results < min(cursor.results_total, incoming.results):
        chunk, tag = results, ALLREDUCE_RECV
        cursor.next_byte = call.recv + chunk * links.chunk_bytes
    elif partials < min(cursor.partials_total, folded):
        chunk, tag = partials, ALLREDUCE_SEND
        own = call.send + chunk * links.chunk_bytes
        cursor.next_byte = own if is_source else _staged(comm, chunk)
    else:
        is_done = partials == cursor.partials_total and results == cursor.results_total
        return IDLE if is_done else BUSY
    cursor.is_result = 1 if tag == ALLREDUCE_RECV else 0
    frame.write_prefix(cursor, tag, _bytes_of(comm, chunk))
    return MOVED


@routine
def _receive(comm, call):
    """Go on with the frame that comes in; fold it when it is complete; return what happened."""
    links, cursor = comm.links, comm.links.incoming
    links.wants_in = 0
    if cursor.partials == cursor.partials_total:
        if cursor.results * links.chunk_bytes >= comm.length:
            return IDLE
        if cursor.results_total == 0:
            return BUSY  # of two ranks: the fold waits for this rank's own chunks to be sent
    links.wants_in = 1
    if cursor.frame_left == 0:
        outcome = _begin_frame(comm, call)
        if outcome != MOVED:
            return outcome
    if cursor.is_result == 0 and not _has_room(comm):
        links.wants_in = 0
        return BUSY
    left = cursor.frame_left
    got = libc.receive(links.ring_in, cursor.next_byte, left)
    if got <= 0:
        return without_bytes(got)
    cursor.next_byte += got
    cursor.frame_left = left - got
    if got == left:
        _finish_frame(comm, call)
    return MOVED | BUSY


@routine
def _begin_frame(comm, call):
    """Read what frame comes next: MOVED once it is known where it belongs."""
    cursor = comm.links.incoming
    outcome = receive_prefix(comm)
    if outcome != IDLE:
        return outcome
    is_result = frame.prefix_tag(cursor) == ALLREDUCE_RECV
    chunk = cursor.results if is_result else cursor.partials
    total = cursor.results_total if is_result else cursor.partials_total
    tag = ALLREDUCE_RECV if is_result else ALLREDUCE_SEND
    if chunk >= total or not frame.is_prefix(cursor, tag, _bytes_of(comm, chunk)):
        return GARBLED
    result = call.recv + chunk * comm.links.chunk_bytes
    cursor.frame_left = _bytes_of(comm, chunk)
    cursor.is_result = 1 if is_result else 0
    cursor.next_byte = result if is_result else _staged(comm, chunk)
    return MOVED


@routine
def _has_room(comm):
    """Tell whether what was staged where the next partial fold goes is sent on, or in recv."""
    incoming = comm.links.incoming
    sends_on = incoming.results_total > 0
    used = comm.links.outgoing.partials if sends_on else incoming.results
    return incoming.partials - used < STAGING_CHUNKS


@routine
def _finish_frame(comm, call):
    """Count a chunk that has come in; fold this rank's own into it if it is a partial fold."""
    cursor = comm.links.incoming
    if cursor.is_result:
        cursor.results += 1
        return
    chunk = cursor.partials
    cursor.partials = chunk + 1
    if comm.size == PAIR:
        return
    begin, length = chunk * comm.links.chunk_bytes, _bytes_of(comm, chunk)
    partial = _staged(comm, chunk)
    fold(comm, call, partial, call.send + begin, length)
    if comm.rank == comm.size - 1:
        move(call.recv + begin, partial, length)
        cursor.results = chunk + 1


@routine
def _fold_pair(comm, call):
    """Of two ranks, fold the chunks that have come; ``recv`` may be what is still to be sent."""
    links, cursor = comm.links, comm.links.incoming
    ready = min(cursor.partials, links.outgoing.partials)
    while cursor.results < ready:
        chunk = cursor.results
        begin = chunk * links.chunk_bytes
        fold_operands(comm, call, _staged(comm, chunk), begin, _bytes_of(comm, chunk))
        cursor.results = chunk + 1


@routine
def fold_operands(comm, call, theirs, begin, length):
    """Of two ranks, fold both operands from byte ``begin`` on, rank 0's first."""
    send, recv = call.send + begin, call.recv + begin
    if is_coordinator(comm):
        if send != recv:
            move(recv, send, length)
        fold(comm, call, recv, theirs, length)
    else:
        fold(comm, call, theirs, send, length)
        move(recv, theirs, length)
