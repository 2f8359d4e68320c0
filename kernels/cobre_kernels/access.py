"""What start-up needs of the atomics from Python: a shared word, and a record lock."""

from cobre_kernels import libc
from cobre_kernels.atomics import load_acquire, store_release
from cobre_kernels.kernel import address_of, kernel
from cobre_kernels.shm.step import announce


@kernel(arguments=0)
def load_word_kernel(address):
    """Load-acquire the word at an address."""
    return load_acquire(address_of(address))


@kernel(arguments=1)
def store_word_kernel(address, value):
    """Store-release a word; the caller names the load that it pairs with."""
    store_release(address_of(address), value)
    return 0


@kernel(arguments=2)
def lock_is_held_kernel(scratch, fd, byte):
    """Whether another process holds the record lock on a byte; see ``libc.lock_is_held``."""
    return 1 if libc.lock_is_held(fd, byte, address_of(scratch)) else 0


@kernel(arguments=1)
def announce_kernel(state, condition):
    """Tell the others that this rank enters no further step; see ``shm/step.announce``."""
    announce(address_of(state), condition)
    return 0


KERNELS = (announce_kernel, load_word_kernel, lock_is_held_kernel, store_word_kernel)
