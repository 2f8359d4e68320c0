"""Gatherv: on the star, chunk after chunk of all ranks to rank 0, which passes them on to the root.

The headers tell rank 0 how many elements each rank sends. It answers once that is what the root
expects; then a rank sends what it has, and is done. No rank but rank 0 receives what is not for it.
"""

from cobre_kernels.collective.calls import Gatherv
from cobre_kernels.collective.checks import block_of, bytes_of, largest_block_bytes
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.gather import agreement, expectation, note_count, with_counts
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.atomics import peek, swap_bytes
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.record import WORD_BYTES
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp import star
from cobre_kernels.tcp.links import is_coordinator
from cobre_kernels.tcp.progress.pause import begin_step
from cobre_kernels.tcp.tags import GATHERV_RECV, GATHERV_SEND


@kernel(COMM, Gatherv)
def gatherv_body(comm, call):
    """Agree on the counts, then move chunks."""
    begin_step(comm)
    if is_coordinator(comm):
        outcome = _agree_as_coordinator(comm, call)
        return _collect(comm, with_counts(comm, call)) if outcome == OK else outcome
    outcome = _agree_as_worker(comm, call)
    if outcome != OK:
        return outcome
    if comm.rank == call.root:
        return _receive(comm, call)
    return _send(comm, call)


@routine
def _told_bytes(call, rank):
    """Return the bytes of payload with which a rank begins: the root's expectation."""
    return WORD_BYTES if rank == call.root else 0


@routine
def _agree_as_coordinator(comm, call):
    for rank in range(1, comm.size):
        star.post_recv(comm, rank, GATHERV_SEND, _told_bytes(call, rank))
    outcome = star.transfer(comm)
    if outcome != OK:
        return outcome
    note_count(comm, 0, call.send_count)
    for rank in range(1, comm.size):
        note_count(comm, rank, swap_bytes(comm.links.peers[rank].inbox.detail))
    expected = expectation(comm, call)
    if call.root != 0:
        expected = peek(star.payload_from(comm, call.root))
    outcome = agreement(comm, expected)
    return star.send_to_all(comm, GATHERV_RECV, 0, 0) if outcome == OK else outcome


@routine
def _agree_as_worker(comm, call):
    """Tell rank 0 what this rank sends, and await its answer; from then on only rank 0 is awaited.

    Other ranks may be done by then, and are not late.
    """
    note_count(comm, 0, expectation(comm, call))
    star.post_recv(comm, 0, GATHERV_RECV, 0)
    star.post_send(comm, 0, GATHERV_SEND, comm.sends, _told_bytes(call, comm.rank))
    outcome = star.transfer(comm)
    comm.links.awaited_in = 0
    return outcome


@routine
def _part_bytes(comm, call, rank, begin):
    """Return the bytes of a rank's block from ``begin`` on, a chunk at most."""
    return max(min(bytes_of(call, rank) - begin, comm.links.gather_bytes), 0)


@routine
def _collect(comm, call):
    """As rank 0, receive the chunks of all ranks; pass them on, unless they are for itself."""
    chunk = comm.links.gather_bytes
    for begin in range(0, largest_block_bytes(comm.size, call), chunk):
        for rank in range(1, comm.size):
            length = _part_bytes(comm, call, rank, begin)
            if length > 0:
                star.post_recv(comm, rank, GATHERV_SEND, length)
        outcome = star.transfer(comm)
        for rank in range(comm.size):
            length = _part_bytes(comm, call, rank, begin)
            if length > 0 and outcome == OK:
                source = star.payload_from(comm, rank) if rank > 0 else call.send + begin
                if call.root == 0:
                    move(block_of(call, rank) + begin, source, length)
                else:
                    star.post_send(comm, call.root, GATHERV_RECV, source, length)
                    outcome = star.transfer(comm)
        if outcome != OK:
            return outcome
    return OK


@routine
def _send(comm, call):
    """Send this rank's block to rank 0."""
    send_bytes, chunk = call.send_count * call.itemsize, comm.links.gather_bytes
    for begin in range(0, send_bytes, chunk):
        star.post_send(comm, 0, GATHERV_SEND, call.send + begin, min(send_bytes - begin, chunk))
        outcome = star.transfer(comm)
        if outcome != OK:
            return outcome
    return OK


@routine
def _receive(comm, call):
    """As the root, receive from rank 0 the chunks of all ranks."""
    own, own_bytes = block_of(call, comm.rank), call.send_count * call.itemsize
    if own != call.send:
        move(own, call.send, own_bytes)
    for begin in range(0, largest_block_bytes(comm.size, call), comm.links.gather_bytes):
        for rank in range(comm.size):
            length = _part_bytes(comm, call, rank, begin)
            if length > 0 and rank != comm.rank:
                star.post_recv(comm, 0, GATHERV_RECV, length)
                outcome = star.transfer(comm)
                if outcome != OK:
                    return outcome
                move(block_of(call, rank) + begin, star.payload_from(comm, 0), length)
    return OK
