"""Copies between private and shared memory.

Larger ones are our own loop of vector loads and stores. glibc's ``memcpy`` turns to ``rep movsb``
from about two KiB, which on recent AMD cores collapses when the two addresses are a few bytes
apart modulo the page size (glibc bug 30994), exactly what a page-aligned slot and a NumPy array
are; ``bench/cases/test_collectives.py`` shows up to a factor of five.
"""

from cobre_kernels.machine.atomics import (
    COPY_ALIGNMENT,
    COPY_BLOCK_BYTES,
    copy_blocks,
    copy_bytes,
    fence_seq_cst,
    stream_blocks,
)
from cobre_kernels.machine.routine import routine

SHORT_BYTES = 1024  # memcpy is best below
STREAM_BYTES = 16 * 2**20  # a rank's share of a last-level cache; see docs/design/copies.md


@routine
def move(destination, source, count):
    """Copy ``count`` bytes; the ranges do not overlap, or are the same."""
    copy_out(destination, source, count, False)


@routine
def is_large(size_bytes):
    """Whether a copy of so many bytes should stream: it would only flush the caches."""
    return size_bytes >= STREAM_BYTES


@routine
def store_fence():
    """Order streaming stores before the stores that follow."""
    fence_seq_cst()


@routine
def copy_out(destination, source, count, streams):
    """Copy; after a copy that streams past the caches the caller calls :func:`store_fence`."""
    if count < SHORT_BYTES:
        copy_bytes(destination, source, count)
        return
    copy_bytes(destination, source, COPY_ALIGNMENT)
    head = COPY_ALIGNMENT - (destination & (COPY_ALIGNMENT - 1))
    blocks = (count - head) // COPY_BLOCK_BYTES
    if streams:
        stream_blocks(destination + head, source + head, blocks)
    else:
        copy_blocks(destination + head, source + head, blocks)
    done = head + blocks * COPY_BLOCK_BYTES
    copy_bytes(destination + done, source + done, count - done)
