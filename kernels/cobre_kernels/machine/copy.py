"""Copies between private and shared memory.

Larger copies are our own loop of vector loads and stores. glibc's ``memmove`` turns to ``rep
movsb`` from about two KiB. On recent AMD cores that collapses when the two addresses are a few
bytes apart modulo the page size (glibc bug 30994), as those of a page-aligned slot and a NumPy
array are.
``bench/cases/test_collectives.py`` shows up to a factor of five.
"""

from cobre_kernels.machine.atomics import (
    COPY_ALIGNMENT,
    COPY_BLOCK_BYTES,
    copy_blocks,
    copy_bytes,
    copy_thirds,
    fence_seq_cst,
    stream_blocks,
)
from cobre_kernels.machine.compiled import routine

SHORT_BYTES = 1024  # memmove is best below
FAR_BYTES = 98304  # below, data of another core are in its first-level cache, or nearly
STREAM_BYTES = 16 * 2**20  # a rank's share of a last-level cache; see docs/design/copies.md


@routine
def move(destination, source, count):
    """Copy ``count`` bytes; the ranges do not overlap, or are the same."""
    copy_out(destination, source, count, False)


@routine
def is_large(size_bytes):
    """Tell whether a copy of so many bytes streams, because it would only flush the caches."""
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


@routine
def copy_far(destination, source, count, streams):
    """Copy from another core's cache, where this is faster than :func:`copy_out`.

    A prefetcher follows the reads of a core within one page. So the core reads lines of six distant
    places in turn.
    """
    if streams or count < FAR_BYTES:
        copy_out(destination, source, count, streams)
    else:
        half = count // 2
        copy_two(destination, source, destination + half, source + half, half)
        copy_bytes(destination + 2 * half, source + 2 * half, count - 2 * half)


@routine
def copy_two(a, from_a, b, from_b, count):
    """Copy ``count`` bytes from either source: thirds of both, in turn.

    While a core waits for lines of another core's cache, it copies lines of its own.
    """
    blocks = count // COPY_BLOCK_BYTES // 3
    third = blocks * COPY_BLOCK_BYTES
    copy_thirds(a, from_a, b, from_b, third, blocks)
    done = 3 * third
    copy_bytes(a + done, from_a + done, count - done)
    copy_bytes(b + done, from_b + done, count - done)
