"""Copies between private and shared memory.

Larger copies are made by a loop of ours with vector loads and stores, because glibc's ``memmove``
uses ``rep movsb`` from about two KiB on. On recent AMD cores ``rep movsb`` is very slow if the two
addresses are a few bytes apart modulo the page size (glibc bug 30994). The addresses of a
page-aligned slot and of a NumPy array are so. In ``bench/cases/test_collectives.py`` such copies
take up to five times as long.
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

SHORT_BYTES = 1024  # for fewer bytes, memmove is best
FAR_BYTES = 98304  # fewer bytes fit, or nearly fit, into the other core's first-level cache
STREAM_BYTES = 16 * 2**20  # the share of a rank in a last-level cache; see docs/design/copies.md


@routine
def move(destination, source, count):
    """Copy ``count`` bytes; the ranges do not overlap, or are the same."""
    copy_out(destination, source, count, False)


@routine
def is_large(size_bytes):
    """Tell whether a copy of this size goes past the caches, because it would only flush them."""
    return size_bytes >= STREAM_BYTES


@routine
def store_fence():
    """Order streaming stores before the stores that follow."""
    fence_seq_cst()


@routine
def copy_out(destination, source, count, streams):
    """Copy, past the caches if ``streams``; in this case the caller then calls store_fence."""
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
    """Copy from another core's cache; for many bytes this is faster than :func:`copy_out`.

    A prefetcher follows the reads of a core within one page only. So the core reads lines at six
    distant places in turn.
    """
    if streams or count < FAR_BYTES:
        copy_out(destination, source, count, streams)
    else:
        half = count // 2
        copy_two(destination, source, destination + half, source + half, half)
        copy_bytes(destination + 2 * half, source + 2 * half, count - 2 * half)


@routine
def copy_two(a, from_a, b, from_b, count):
    """Copy ``count`` bytes to ``a`` and ``count`` bytes to ``b``: thirds of both, in turn.

    If one source is in another core's cache, this core copies lines of the other source while it
    waits for lines of the first.
    """
    blocks = count // COPY_BLOCK_BYTES // 3
    third = blocks * COPY_BLOCK_BYTES
    copy_thirds(a, from_a, b, from_b, third, blocks)
    done = 3 * third
    copy_bytes(a + done, from_a + done, count - done)
    copy_bytes(b + done, from_b + done, count - done)
