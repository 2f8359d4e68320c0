"""Tables of counts and displacements for MPI, as arrays of C ints in memory of our own."""

import numpy as np
from numba import carray

from cobre_kernels import layout
from cobre_kernels.machine.atomics import peek, poke
from cobre_kernels.machine.kernel import as_pointer
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi import table

LARGEST_INT = 2**31 - 1


@routine
def array_of(state, mpi, number):
    """Address of one of the four arrays of the table, a 64-bit word for each rank."""
    return peek(mpi + table.COUNTS) + 8 * number * peek(state + layout.COMM_SIZE)


@routine
def put(array, index, value):
    """Store a C int."""
    carray(as_pointer(array), index + 1, np.int32)[index] = value


@routine
def by_node(state, mpi, bytes_per_rank):
    """Bytes of each node, and where they begin, if every rank has as many; as two arrays."""
    lengths, places = array_of(state, mpi, 0), array_of(state, mpi, 1)
    starts = peek(mpi + table.STARTS)
    for node in range(peek(mpi + table.NODES)):
        first, end = peek(starts + 8 * node), peek(starts + 8 * node + 8)
        put(lengths, node, (end - first) * bytes_per_rank)
        put(places, node, first * bytes_per_rank)
    return lengths, places


@routine
def put_block(array, index, value, is_large):
    """Store a C int, or a 64-bit count."""
    if is_large:
        poke(array + 8 * index, value)
    else:
        put(array, index, value)
