"""Counts and displacements of each leader: C ints, or 64-bit counts, in memory of our own.

MPI takes lengths and displacements, in bytes. There are two of each, a 64-bit word for each rank:
``given`` and ``got``. A call that gives to all what each has takes only the first.
"""

import numpy as np
from numba import carray

from cobre_kernels.machine.atomics import poke
from cobre_kernels.machine.kernel import as_pointer
from cobre_kernels.machine.record import WORD_BYTES
from cobre_kernels.machine.routine import routine

LARGEST_INT = 2**31 - 1
GIVEN, GIVEN_AT, GOT, GOT_AT = range(4)


@routine
def array_of(comm, number):
    """Return the address of one of the four arrays."""
    return comm.mpi.counts + WORD_BYTES * number * comm.size


@routine
def _put(comm, number, index, value):
    carray(as_pointer(array_of(comm, number)), index + 1, np.int32)[index] = value


@routine
def put_given(comm, leader, length, displacement):
    """Say how much is given to, or by, a leader, and where it lies."""
    _put(comm, GIVEN, leader, length)
    _put(comm, GIVEN_AT, leader, displacement)


@routine
def put_got(comm, leader, length, displacement):
    """Say how much is got from a leader, and where it goes."""
    _put(comm, GOT, leader, length)
    _put(comm, GOT_AT, leader, displacement)


@routine
def put_given_large(comm, leader, length, displacement):
    """The same as :func:`put_given` as 64-bit counts."""
    poke(array_of(comm, GIVEN) + WORD_BYTES * leader, length)
    poke(array_of(comm, GIVEN_AT) + WORD_BYTES * leader, displacement)


@routine
def put_given_by_node(comm, bytes_per_rank):
    """Say what each node gives, if every rank gives as many bytes, in node order."""
    mpi = comm.mpi
    for node in range(mpi.nodes):
        first, end = mpi.node_starts[node], mpi.node_starts[node + 1]
        put_given(comm, node, (end - first) * bytes_per_rank, first * bytes_per_rank)
