"""Barrier of one rank: nothing to wait for, but a closed communicator still says so."""

from cobre_kernels.guard import usability
from cobre_kernels.kernel import address_of, kernel


@kernel(arguments=2)
def synchronise_kernel(state, kind, length):
    """Return at once."""
    return usability(address_of(state))
