"""Copies between private and shared memory.

Larger ones are our own loop of vector loads and stores. glibc's ``memcpy`` turns to ``rep movsb``
from about two KiB, which on recent AMD cores collapses when the two addresses are a few bytes
apart modulo the page size (glibc bug 30994), exactly what a page-aligned slot and a NumPy array
are; ``bench/one_machine.py`` shows up to a factor of five.
"""

from numba import njit

from cobre_kernels.atomics import COPY_ALIGNMENT, COPY_BLOCK_BYTES, copy_blocks, copy_bytes

SHORT_BYTES = 1024  # memcpy is best below


@njit
def move(destination, source, count):
    """Copy ``count`` bytes; the ranges do not overlap."""
    if count < SHORT_BYTES:
        copy_bytes(destination, source, count)
        return
    copy_bytes(destination, source, COPY_ALIGNMENT)
    head = COPY_ALIGNMENT - (destination & (COPY_ALIGNMENT - 1))
    blocks = (count - head) // COPY_BLOCK_BYTES
    copy_blocks(destination + head, source + head, blocks)
    done = head + blocks * COPY_BLOCK_BYTES
    copy_bytes(destination + done, source + done, count - done)
