"""The agreement of a gatherv: each rank compares the root's counts with what ranks really send.

Only the root has counts. Each rank shows how many elements it sends, and the root also shows a hash
of its counts. Every rank compares this hash with the hash of the numbers that all ranks show. So if
the counts are wrong, all ranks notice in the same step.
"""

from cobre_kernels.collective.calls import CALLED, Gatherv, contribution_bytes
from cobre_kernels.collective.checks import block_of, count_of, mix
from cobre_kernels.collective.comm import PRESENT
from cobre_kernels.collective.status import DISAGREE, OK
from cobre_kernels.machine.atomics import peek, poke
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.record import WORD_BYTES


@routine
def expectation(comm, call):
    """Return a hash of the root's counts; 0 on other ranks, which have no counts."""
    mixed = 0
    if comm.rank == call.root:
        for rank in range(comm.size):
            mixed = mix(mixed, count_of(call, rank))
    return mixed


@routine
def note_count(comm, rank, count):
    """Keep the number of elements that a rank sends."""
    poke(comm.sends + rank * WORD_BYTES, count)


@routine
def agreement(comm, expected):
    """Return OK, or DISAGREE after noting all calls in the failure records."""
    mixed = 0
    for rank in range(comm.size):
        mixed = mix(mixed, peek(comm.sends + rank * WORD_BYTES))
    if mixed == expected:
        return OK
    for rank in range(comm.size):
        failure = comm.failures[rank]
        failure.reason, failure.signature = PRESENT, comm.signature & CALLED
        failure.compared, failure.count = comm.compared, peek(comm.sends + rank * WORD_BYTES)
    return DISAGREE


@routine
def with_counts(comm, call):
    """Return the call, with the numbers of elements that ranks send as its counts.

    The count of the root is 0, because the root's own block is moved here.
    """
    if comm.rank == call.root and block_of(call, call.root) != call.send:
        move(block_of(call, call.root), call.send, contribution_bytes(call))
    note_count(comm, call.root, 0)
    return Gatherv(
        call.send, call.send_count, call.recv, call.recv_count, call.itemsize, call.dtype,
        comm.sends, call.displs, comm.size, call.displs_len, call.root,
    )  # fmt: skip
