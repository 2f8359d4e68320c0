"""Atomics for Python, outside collectives: a shared word, and a record lock."""

from typing import NamedTuple

from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import compare_exchange, load_acquire, store_release
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.record import Record, shared

WORD = Record("Word", "One shared word at any address.", value=shared("the word"))


class Store(NamedTuple):
    """A value to store."""

    value: int


class Swap(NamedTuple):
    """The value that the word must hold, and the value to store if it does."""

    expected: int
    value: int


class Lock(NamedTuple):
    """A byte of a file, and memory for a ``struct flock``."""

    fd: int
    byte: int
    scratch: int


@kernel(WORD)
def load_word_kernel(word):
    """Load-acquire the word; the caller names the store that the load pairs with."""
    return load_acquire(word.value)


@kernel(WORD, Store)
def store_word_kernel(word, call):
    """Store-release the word; the caller names the load that the store pairs with."""
    store_release(word.value, call.value)
    return 0


@kernel(WORD, Swap)
def exchange_word_kernel(word, call):
    """Store the value if the word holds the expected value; return what the word held.

    The exchange acquires and releases; the caller names the accesses that it pairs with.
    """
    return compare_exchange(word.value, call.expected, call.value)


@kernel(WORD, Lock)
def lock_is_held_kernel(word, call):
    """Return 1 if another process holds the record lock on a byte; ``word`` is not used."""
    return 1 if libc.lock_is_held(call.fd, call.byte, call.scratch) else 0
