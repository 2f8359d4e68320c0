"""Allgatherv: every rank's chunk goes through its slot, one step a chunk, two chunks in flight.

A byte is copied twice: into the slot by its owner, out of it by each reader. Chunks are small
enough to be read from the owner's cache.
"""

from cobre_kernels.collective.calls import Allgatherv
from cobre_kernels.collective.checks import block_of, bytes_of, largest_block_bytes
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import DISAGREE, OK
from cobre_kernels.machine.copy import copy_out, is_large, move, store_fence
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.shm.control import INLINE_BYTES
from cobre_kernels.shm.slot import fill_slot, slot_of
from cobre_kernels.shm.step import await_rank, next_generation, publish
from cobre_kernels.shm.wait import cell_of


@kernel(COMM, Allgatherv)
def allgatherv_body(comm, call):
    """Move chunk after chunk of all blocks; up to INLINE_BYTES travel in the cells."""
    largest = largest_block_bytes(comm.size, call)
    is_inline = largest <= INLINE_BYTES
    streams = is_large(call.recv_count * call.itemsize)
    begin = 0
    while True:
        outcome = _chunk(comm, call, begin, is_inline, streams)
        begin += comm.chunk_bytes
        if outcome != OK or begin >= largest:
            if streams:
                store_fence()
            return outcome


@routine
def _chunk(comm, call, begin, is_inline, streams):
    """Move bytes from ``begin`` on, a chunk at most, of every block that reaches so far."""
    generation = next_generation(comm)
    chunk, rank = comm.chunk_bytes, comm.rank
    own_bytes = min(bytes_of(call, rank) - begin, chunk)
    own_block = block_of(call, rank)
    if own_bytes > 0 and is_inline:
        move(cell_of(comm, rank, generation).payload, call.send, own_bytes)
    elif own_bytes > 0:
        fill_slot(comm, generation, call.send + begin, own_bytes)
    publish(comm, generation)
    if own_bytes > 0 and own_block != call.send:
        copy_out(own_block + begin, call.send + begin, own_bytes, streams)
    worst = OK
    for _ in range(comm.size - 1):
        rank += 1
        if rank == comm.size:
            rank = 0
        outcome = await_rank(comm, rank, generation)
        if outcome == DISAGREE:
            worst = DISAGREE
        elif outcome != OK:
            return outcome
        length = min(bytes_of(call, rank) - begin, chunk)
        if length > 0 and worst == OK:
            target = block_of(call, rank) + begin
            if is_inline:
                move(target, cell_of(comm, rank, generation).payload, length)
            else:
                copy_out(target, slot_of(comm, rank, generation), length, streams)
    return worst
