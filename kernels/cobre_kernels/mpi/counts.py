"""Counts and displacements for MPI: arrays of C ints or 64-bit counts in memory of our own."""

import numpy as np
from numba import carray

from cobre_kernels.machine.atomics import poke
from cobre_kernels.machine.kernel import as_pointer
from cobre_kernels.machine.routine import routine

LARGEST_INT = 2**31 - 1


@routine
def array_of(comm, number):
    """Return the address of one of four arrays, each a 64-bit word for each rank."""
    return comm.mpi.counts + 8 * number * comm.size


@routine
def put(array, index, value):
    """Store a C int."""
    carray(as_pointer(array), index + 1, np.int32)[index] = value


@routine
def put_count(array, index, value, is_large):
    """Store a C int, or a 64-bit count."""
    if is_large:
        poke(array + 8 * index, value)
    else:
        put(array, index, value)


@routine
def by_node(comm, bytes_per_rank):
    """Return two arrays: bytes and displacement of each node, if every rank has as many."""
    mpi = comm.mpi
    lengths, displacements = array_of(comm, 0), array_of(comm, 1)
    for node in range(mpi.nodes):
        first, end = mpi.node_starts[node], mpi.node_starts[node + 1]
        put(lengths, node, (end - first) * bytes_per_rank)
        put(displacements, node, first * bytes_per_rank)
    return lengths, displacements
