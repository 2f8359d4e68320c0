"""Run-time checks of arguments that every backend makes before it communicates."""

from cobre_kernels import dtypes, fold, layout, status
from cobre_kernels.atomics import peek
from cobre_kernels.routine import routine

LOW_63 = 2**63 - 1  # the same hash with compilation and without
GOLDEN = -7046029254386353131  # 2**64 / golden ratio, as in Knuth's multiplicative hashing


@routine
def _overlap(a, a_bytes, b, b_bytes):
    return a < b + b_bytes and b < a + a_bytes and a_bytes > 0 and b_bytes > 0


@routine
def check_broadcast(state, root):
    """Return OK or BAD_ROOT."""
    return status.OK if 0 <= root < peek(state + layout.COMM_SIZE) else status.BAD_ROOT


@routine
def check_allreduce(send, send_count, recv, recv_count, itemsize, dtype, op):
    """Return OK or what is wrong with the arguments of an allreduce."""
    if send_count != recv_count or send_count <= 0:
        return status.LENGTHS_DIFFER
    if op < fold.SUM or op > fold.MAX:
        return status.BAD_OP
    is_complex = dtype == dtypes.COMPLEX64 or dtype == dtypes.COMPLEX128
    if is_complex and op != fold.SUM:
        return status.BAD_OP
    if (send | recv) % (itemsize // 2 if is_complex else itemsize) != 0:
        return status.UNALIGNED
    size_bytes = send_count * itemsize
    if send != recv and _overlap(send, size_bytes, recv, size_bytes):
        return status.BUFFERS_OVERLAP
    return status.OK


@routine
def check_allgatherv(
    state, send, send_count, recv, recv_count, itemsize, counts, displs, counts_len, displs_len
):
    """Return OK or what is wrong with the arguments of an allgatherv.

    ``counts`` and ``displs`` are addresses of so many int64.
    """
    size = peek(state + layout.COMM_SIZE)
    if counts_len != size or displs_len != size:
        return status.WRONG_TABLES
    rank = peek(state + layout.RANK)
    if peek(counts + 8 * rank) != send_count:
        return status.SEND_NOT_COUNT
    end = 0
    ascending = True
    for r in range(size):
        count, displacement = peek(counts + 8 * r), peek(displs + 8 * r)
        if count < 0 or displacement < 0 or count > recv_count or displacement > recv_count - count:
            return status.BLOCK_OUTSIDE
        if count > 0:
            ascending = ascending and displacement >= end
            end = displacement + count
    if not ascending and _blocks_overlap(size, counts, displs):
        return status.BLOCKS_OVERLAP
    send_bytes = send_count * itemsize
    own_block = recv + peek(displs + 8 * rank) * itemsize
    if send != own_block and _overlap(send, send_bytes, recv, recv_count * itemsize):
        return status.BUFFERS_OVERLAP
    return status.OK


@routine
def _blocks_overlap(size, counts, displs):
    for r in range(size):
        for s in range(r):
            if _overlap(
                peek(displs + 8 * r),
                peek(counts + 8 * r),
                peek(displs + 8 * s),
                peek(counts + 8 * s),
            ):
                return True
    return False


@routine
def largest_count(size, counts):
    """Elements of the longest block of an allgatherv."""
    largest = 0
    for r in range(size):
        largest = max(largest, peek(counts + 8 * r))
    return largest


@routine
def hash_tables(size, itemsize, counts, displs):
    """Mix the tables of an allgatherv into one word, so that ranks can compare them."""
    mixed = itemsize
    for r in range(size):
        mixed = ((mixed ^ peek(counts + 8 * r)) * GOLDEN) & LOW_63
        mixed = ((mixed ^ (mixed >> 29) ^ peek(displs + 8 * r)) * GOLDEN) & LOW_63
    return mixed
