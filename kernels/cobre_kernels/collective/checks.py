"""Run-time checks of arguments that every backend makes before it communicates."""

from cobre_kernels.collective import dtypes, status
from cobre_kernels.collective.calls import contribution_bytes
from cobre_kernels.collective.reduction.fold import takes
from cobre_kernels.machine.atomics import peek
from cobre_kernels.machine.compiled import routine

LOW_63 = 2**63 - 1  # cuts hashes to 63 bits, so that they are the same if nothing is compiled
GOLDEN = -7046029254386353131  # 2**64 / golden ratio, as in Knuth's multiplicative hashing


@routine
def _overlap(a, a_bytes, b, b_bytes):
    return a < b + b_bytes and b < a + a_bytes and a_bytes > 0 and b_bytes > 0


@routine
def check_broadcast(comm, call):
    """Return OK, or the status of wrong arguments of a broadcast."""
    if not 0 <= call.root < comm.size:
        return status.BAD_ROOT
    return -call.size_bytes if call.size_bytes < 0 else status.OK


@routine
def check_allreduce(call):
    """Return OK, or the status of wrong arguments of an allreduce."""
    if call.send_count != call.recv_count or call.send_count <= 0:
        return -call.send_count if call.send_count < 0 else status.LENGTHS_DIFFER
    if not takes(call.op, call.dtype):
        return status.BAD_OP
    is_complex = call.dtype == dtypes.COMPLEX64 or call.dtype == dtypes.COMPLEX128
    alignment = call.itemsize >> 1 if is_complex else call.itemsize  # a power of two
    if (call.send | call.recv) & (alignment - 1) != 0:
        return status.UNALIGNED
    size_bytes = contribution_bytes(call)
    if call.send != call.recv and _overlap(call.send, size_bytes, call.recv, size_bytes):
        return status.BUFFERS_OVERLAP
    return status.OK


@routine
def check_allgatherv(comm, call):
    """Return OK, or the status of wrong arguments of an allgatherv."""
    if call.counts_len != comm.size or call.displs_len != comm.size:
        return -call.counts_len if call.counts_len < 0 else status.WRONG_TABLES
    if count_of(call, comm.rank) != call.send_count:
        return -call.send_count if call.send_count < 0 else status.SEND_NOT_COUNT
    end = 0
    ascending = True
    for r in range(comm.size):
        count, displacement = count_of(call, r), displacement_of(call, r)
        if count < 0 or displacement < 0:
            return status.NEGATIVE
        if count > call.recv_count or displacement > call.recv_count - count:
            return status.BLOCK_OUTSIDE
        if count > 0:
            ascending = ascending and displacement >= end
            end = displacement + count
    if not ascending and _blocks_overlap(comm.size, call):
        return status.BLOCKS_OVERLAP
    send_bytes = contribution_bytes(call)
    recv_bytes = call.recv_count * call.itemsize
    is_own_block = call.send == block_of(call, comm.rank)
    if not is_own_block and _overlap(call.send, send_bytes, call.recv, recv_bytes):
        return status.BUFFERS_OVERLAP
    return status.OK


@routine
def check_gatherv(comm, call):
    """Return OK, or the status of wrong arguments of a gatherv; the root alone checks counts."""
    if not 0 <= call.root < comm.size:
        return status.BAD_ROOT
    if comm.rank == call.root:
        return check_allgatherv(comm, call)
    return -call.send_count if call.send_count < 0 else status.OK


@routine
def _blocks_overlap(size, call):
    for r in range(size):
        for s in range(r):
            if _overlap(
                displacement_of(call, r), count_of(call, r),
                displacement_of(call, s), count_of(call, s),
            ):  # fmt: skip
                return True
    return False


@routine
def count_of(call, rank):
    """Return the number of elements of a rank's block."""
    return peek(call.counts + 8 * rank)


@routine
def bytes_of(call, rank):
    """Return the number of bytes of a rank's block."""
    return peek(call.counts + 8 * rank) * call.itemsize


@routine
def displacement_of(call, rank):
    """Return the element of ``recv`` at which a rank's block begins."""
    return peek(call.displs + 8 * rank)


@routine
def block_of(call, rank):
    """Return the address of a rank's block in ``recv``."""
    return call.recv + peek(call.displs + 8 * rank) * call.itemsize


@routine
def reach_bytes(comm, call):
    """Return how far the last block reaches into ``recv``, in bytes; ``recv`` may be longer."""
    reach = 0
    for rank in range(comm.size):
        reach = max(reach, count_of(call, rank) + displacement_of(call, rank))
    return reach * call.itemsize


@routine
def largest_block_bytes(size, call):
    """Return the bytes of the longest block of an allgatherv."""
    largest = 0
    for r in range(size):
        largest = max(largest, count_of(call, r))
    return largest * call.itemsize


@routine
def mix(mixed, word):
    """Mix a word into a hash."""
    return ((mixed ^ (mixed >> 29) ^ word) * GOLDEN) & LOW_63


@routine
def hash_tables(comm, call):
    """Mix the counts and displacements of an allgatherv into one word that ranks compare."""
    mixed = call.itemsize
    for r in range(comm.size):
        mixed = ((mixed ^ count_of(call, r)) * GOLDEN) & LOW_63
        mixed = ((mixed ^ (mixed >> 29) ^ displacement_of(call, r)) * GOLDEN) & LOW_63
    return mixed
