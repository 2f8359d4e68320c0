"""Copies between private and shared memory.

Larger ones are our own loop of vector loads and stores. glibc's ``memcpy`` turns to ``rep movsb``
from about two KiB, which on recent AMD cores collapses when the two addresses are a few bytes
apart modulo the page size (glibc bug 30994), exactly what a page-aligned slot and a NumPy array
are; ``bench/cases/test_collectives.py`` shows up to a factor of five.
"""

from cobre_kernels.atomics import (
    COPY_ALIGNMENT,
    COPY_BLOCK_BYTES,
    copy_blocks,
    copy_bytes,
    fence_seq_cst,
    stream_blocks,
)
from cobre_kernels.routine import routine

SHORT_BYTES = 1024  # memcpy is best below
STREAM_BYTES = 16 * 2**20  # a rank's share of a last-level cache; see docs/design/copies.md


@routine
def move(destination, source, count):
    """Copy ``count`` bytes; the ranges do not overlap, or are the same."""
    move_out(destination, source, count, False)


@routine
def is_large(size_bytes):
    """Whether an output is better written past the caches, which it would only flush."""
    return size_bytes >= STREAM_BYTES


@routine
def settle():
    """Order stores past the caches before whatever follows."""
    fence_seq_cst()


@routine
def move_out(destination, source, count, past_caches):
    """Copy into an output; with ``past_caches`` the caller calls :func:`settle` afterwards."""
    if count < SHORT_BYTES:
        copy_bytes(destination, source, count)
        return
    copy_bytes(destination, source, COPY_ALIGNMENT)
    head = COPY_ALIGNMENT - (destination & (COPY_ALIGNMENT - 1))
    blocks = (count - head) // COPY_BLOCK_BYTES
    if past_caches:
        stream_blocks(destination + head, source + head, blocks)
    else:
        copy_blocks(destination + head, source + head, blocks)
    done = head + blocks * COPY_BLOCK_BYTES
    copy_bytes(destination + done, source + done, count - done)
