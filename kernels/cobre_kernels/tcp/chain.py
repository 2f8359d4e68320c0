"""The verb chain: a large reduction in rank order, over nodes with ranks that follow each other.

Leader 0 folds the contributions of its ranks chunk by chunk, and sends each chunk to leader 1.
Leader 1 folds the contributions of its own ranks into the chunk, and sends the chunk to leader 2,
and so on. So the last leader has the fold of all contributions in rank order. From the last leader,
results travel around the ring. Chunks follow each other without a pause, so all links are busy at
the same time. A link carries each byte at most twice, however many ranks a node has.

Two ranks that are alone on their nodes form no chain: each sends its whole contribution to the
other rank, and both fold the two contributions, that of rank 0 first.

The order of ranks in a fold is in :func:`_fold_own`, and for two such ranks in :func:`_fold_pair`.

A ring reduce-scatter would move slightly fewer bytes. But it would begin the fold of each stripe at
another rank, and so give other bits than all other ways of an allreduce.
"""

from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.reduction.fold import fold
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.record import LINE_BYTES
from cobre_kernels.nodes.records import LEAST_PIECE_BYTES, is_pair
from cobre_kernels.nodes.verbs import Chain
from cobre_kernels.nodes.waiting import end_verb
from cobre_kernels.tcp import frame
from cobre_kernels.tcp.links import CHUNK_BYTES, STAGING_CHUNKS
from cobre_kernels.tcp.progress.neighbours import advance, receive_prefix, send_frame
from cobre_kernels.tcp.progress.sockets import (
    GARBLED,
    MORE,
    MOVED,
    NO_MORE,
    receive_data,
    without_bytes,
)
from cobre_kernels.tcp.progress.waiting import begin_links
from cobre_kernels.tcp.tags import PARTIAL, RESULT

CHUNKS_WANTED = 4  # in a payload: so nodes work at the same time, and make few system calls


@kernel(COMM, Chain)
def chain_kernel(comm, call):
    """Fold the contributions of all ranks into ``result``."""
    outcome, activity = _start(comm, call), MORE
    while outcome == OK and activity & MORE:
        sent = _send(comm, call)
        received = _receive(comm, call)
        if is_pair(comm):
            _fold_pair(comm, call)
        outcome, activity = advance(comm, sent, received), sent | received
    return end_verb(comm, outcome)


@routine
def _start(comm, call):
    """Set what moves: partial folds to the last node, and results from the last node on.

    Return OK, or how the verb has failed before its beginning.
    """
    links, node, last = comm.links, comm.nodes.own_node, comm.nodes.nodes - 1
    links.chunk_bytes = chunk_bytes(call.length)
    chunks = -(-call.length // links.chunk_bytes)
    if is_pair(comm):
        _start_cursor(links.outgoing, chunks, 0)
        _start_cursor(links.incoming, chunks, 0)
    else:
        _start_cursor(links.outgoing, chunks * (node != last), chunks * (node != last - 1))
        _start_cursor(links.incoming, chunks * (node != 0), chunks * (node != last))
    return begin_links(comm)


@routine
def chunk_bytes(length):
    """Return the bytes of a chunk, for a payload of ``length`` bytes."""
    wanted = -(-length // CHUNKS_WANTED // LINE_BYTES) * LINE_BYTES
    return min(max(wanted, LEAST_PIECE_BYTES), CHUNK_BYTES)


@routine
def _start_cursor(cursor, partials_total, results_total):
    cursor.prefix_left = 0
    cursor.frame_left = 0
    cursor.partials = 0
    cursor.partials_total = partials_total
    cursor.results = 0
    cursor.results_total = results_total


@routine
def _bytes_of(comm, call, chunk):
    """Return the length of a chunk; the last chunk may be shorter than the others."""
    return min(comm.links.chunk_bytes, call.length - chunk * comm.links.chunk_bytes)


@routine
def _staged(comm, chunk):
    """Return the address where the partial fold of a chunk is staged."""
    return comm.links.staging + chunk % STAGING_CHUNKS * CHUNK_BYTES


@routine
def _fold_own(comm, call, chunk, first):
    """Fold the contributions of this node's ranks, from ``first`` on, into a staged chunk."""
    partial, length = _staged(comm, chunk), _bytes_of(comm, call, chunk)
    begin = call.contributions + chunk * comm.links.chunk_bytes
    if first > 0:
        move(partial, begin, length)
    for index in range(first, call.ranks):
        fold(comm, call, partial, begin + index * call.stride, length)


@routine
def _send(comm, call):
    """Continue to send the frame under way, or begin the next frame; return the progress."""
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
    return MOVED | MORE


@routine
def _choose(comm, call):
    """Begin the next frame, preferably a result.

    Return MOVED if a frame has begun, MORE if no frame is ready yet, NO_MORE if all are sent.
    """
    links, cursor, incoming = comm.links, comm.links.outgoing, comm.links.incoming
    partials, results = cursor.partials, cursor.results
    is_source = comm.nodes.own_node == 0 or is_pair(comm)
    folded = cursor.partials_total if is_source else incoming.partials
    if results < min(cursor.results_total, incoming.results):
        chunk, tag = results, RESULT
        cursor.next_byte = call.result + chunk * links.chunk_bytes
    elif partials < min(cursor.partials_total, folded):
        chunk, tag = partials, PARTIAL
        cursor.next_byte = _partial(comm, call, chunk) if is_source else _staged(comm, chunk)
    else:
        is_done = partials == cursor.partials_total and results == cursor.results_total
        return NO_MORE if is_done else MORE
    cursor.is_result = 1 if tag == RESULT else 0
    frame.write_prefix(cursor, tag, _bytes_of(comm, call, chunk))
    return MOVED


@routine
def _partial(comm, call, chunk):
    """Return the address of the fold of a chunk over the ranks of this node alone."""
    if call.ranks == 1:
        return call.contributions + chunk * comm.links.chunk_bytes
    _fold_own(comm, call, chunk, 1)
    return _staged(comm, chunk)


@routine
def _receive(comm, call):
    """Continue to receive a frame; fold its chunk when it is complete; return the progress."""
    links, cursor = comm.links, comm.links.incoming
    links.wants_in = 0
    if cursor.partials == cursor.partials_total and cursor.results >= cursor.results_total:
        return NO_MORE
    links.wants_in = 1
    if cursor.frame_left == 0:
        outcome = _begin_frame(comm, call)
        if outcome != MOVED:
            return outcome
    if cursor.is_result == 0 and not _has_room(comm):
        links.wants_in = 0
        return MORE
    left = cursor.frame_left
    got = receive_data(links.previous, cursor.next_byte, left)
    if got <= 0:
        return without_bytes(got)
    cursor.next_byte += got
    cursor.frame_left = left - got
    if got == left:
        _finish_frame(comm, call)
    return MOVED | MORE


@routine
def _begin_frame(comm, call):
    """Read the prefix of the next frame; return MOVED when the cursor is set for its chunk."""
    cursor = comm.links.incoming
    outcome = receive_prefix(comm)
    if outcome != NO_MORE:
        return outcome
    is_result = frame.prefix_tag(cursor) == RESULT
    chunk = cursor.results if is_result else cursor.partials
    total = cursor.results_total if is_result else cursor.partials_total
    tag = RESULT if is_result else PARTIAL
    if chunk >= total or not frame.is_prefix(cursor, tag, _bytes_of(comm, call, chunk)):
        return GARBLED
    result = call.result + chunk * comm.links.chunk_bytes
    cursor.frame_left = _bytes_of(comm, call, chunk)
    cursor.is_result = 1 if is_result else 0
    cursor.next_byte = result if is_result else _staged(comm, chunk)
    return MOVED


@routine
def _has_room(comm):
    """Tell whether the staging memory has a free chunk for the next partial fold.

    A chunk becomes free when it has been sent on, or when its fold is in the result.
    """
    incoming = comm.links.incoming
    sends_on = incoming.results_total > 0
    used = comm.links.outgoing.partials if sends_on else incoming.results
    return incoming.partials - used < STAGING_CHUNKS


@routine
def _finish_frame(comm, call):
    """Count a chunk that has arrived; if it is a partial fold, fold this node's chunks into it."""
    cursor = comm.links.incoming
    if cursor.is_result:
        cursor.results += 1
        return
    chunk = cursor.partials
    cursor.partials = chunk + 1
    if is_pair(comm):
        return
    _fold_own(comm, call, chunk, 0)
    if comm.nodes.own_node == comm.nodes.nodes - 1:
        partial, length = _staged(comm, chunk), _bytes_of(comm, call, chunk)
        move(call.result + chunk * comm.links.chunk_bytes, partial, length)
        cursor.results = chunk + 1


@routine
def _fold_pair(comm, call):
    """As one of two ranks, fold chunks that have arrived, if this rank's own chunks are sent.

    A chunk that is not sent yet must stay, because ``result`` may be the memory from which it is
    sent.
    """
    links, cursor = comm.links, comm.links.incoming
    ready = min(cursor.partials, links.outgoing.partials)
    while cursor.results < ready:
        chunk = cursor.results
        begin, length = chunk * links.chunk_bytes, _bytes_of(comm, call, chunk)
        theirs, own, result = _staged(comm, chunk), call.contributions + begin, call.result + begin
        if comm.nodes.own_node == 0:
            if own != result:
                move(result, own, length)
            fold(comm, call, result, theirs, length)
        else:
            fold(comm, call, theirs, own, length)
            move(result, theirs, length)
        cursor.results = chunk + 1
