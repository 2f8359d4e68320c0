"""Memory: atomic and plain access to 64-bit words by address, fences and copies.

If another process writes a word, only functions of this file access the word. LLVM would move a
plain NumPy load out of a waiting loop, and the loop would never end. Orderings are those of C11 and
LLVM, so they hold on aarch64 as well as on x86-64. In compiled code each function becomes the
instructions that ``compiling/instructions.py`` has under the name of the function.

The bodies in Python are for ``NUMBA_DISABLE_JIT=1``. They suffice to step through the kernels of
one process, because an 8-byte store of CPython is never seen half done.
"""

import ctypes

from cobre_kernels.machine.compiled import instruction
from cobre_kernels.machine.record import WORD_BYTES, peek_now, poke_now  # noqa: F401

COPY_BLOCK_BYTES = 256
COPY_ALIGNMENT = 64


@instruction
def peek(address):
    """Plain load of a word that is in no record: of NumPy, MPI, a table, or a payload."""
    return peek_now(address)


@instruction
def poke(address, value):
    """Plain store to a word that is in no record."""
    poke_now(address, value)


@instruction
def load_relaxed(address):
    """Load a word atomically; accesses to other words are not ordered."""
    return peek_now(address)


@instruction
def load_acquire(address):
    """Load a word; then this thread sees all that was stored before the release of the value."""
    return peek_now(address)


@instruction
def load_seq_cst(address):
    """Load-acquire a word, in the one order of all sequentially consistent accesses."""
    return peek_now(address)


@instruction
def store_relaxed(address, value):
    """Store a word atomically; accesses to other words are not ordered."""
    poke_now(address, value)


@instruction
def store_release(address, value):
    """Store a word; a thread that acquires the value sees all that this thread stored before."""
    poke_now(address, value)


@instruction
def store_seq_cst(address, value):
    """Store-release a word, in the one order of all sequentially consistent accesses."""
    poke_now(address, value)


@instruction
def fetch_add(address, value):
    """Add to a word (seq_cst); return what the word held before."""
    before = peek_now(address)
    poke_now(address, before + value)
    return before


@instruction
def compare_exchange(address, expected, desired):
    """Store ``desired`` if the word holds ``expected`` (acq_rel); return what the word held."""
    before = peek_now(address)
    if before == expected:
        poke_now(address, desired)
    return before


@instruction
def fence_seq_cst():
    """Full memory fence (seq_cst); in Python, which runs instructions in order, it does nothing."""


@instruction
def swap_bytes(word):
    """Swap a word between this machine's byte order and the other byte order."""
    return int.from_bytes(word.to_bytes(8, "little", signed=True), "big", signed=True)


@instruction
def cpu_pause():
    """Tell the core that it spins: ``pause`` on x86, ``yield`` on aarch64."""


@instruction
def copy_bytes(destination, source, count):
    """Copy ``count`` bytes; the ranges do not overlap."""
    ctypes.memmove(destination, source, count)


@instruction
def copy_blocks(destination, source, blocks):
    """Copy blocks of COPY_BLOCK_BYTES with vector stores; ``destination`` is aligned."""
    ctypes.memmove(destination, source, blocks * COPY_BLOCK_BYTES)


@instruction
def copy_thirds(a, from_a, b, from_b, third, blocks):
    """Copy blocks to ``a`` and ``b`` alternately, in thirds that are ``third`` bytes apart."""
    for offset in (0, third, 2 * third):
        ctypes.memmove(a + offset, from_a + offset, blocks * COPY_BLOCK_BYTES)
        ctypes.memmove(b + offset, from_b + offset, blocks * COPY_BLOCK_BYTES)


@instruction
def stream_blocks(destination, source, blocks):
    """Copy blocks past the caches, for data that is not read again soon.

    Non-temporal stores are weakly ordered on x86-64, so a ``fence_seq_cst`` must follow before a
    store publishes the data.
    """
    ctypes.memmove(destination, source, blocks * COPY_BLOCK_BYTES)
