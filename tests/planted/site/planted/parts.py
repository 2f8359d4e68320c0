"""Small pieces of wrong kernels, which the patches call.

A mutant sees this module as ``parts``. Every ``call`` is the call that the kernel was given.
"""

import numpy as np
from cobre_kernels.collective import dtypes
from cobre_kernels.collective.calls import (  # noqa: F401  # some are for the mutants
    BARRIER,
    FENCE,
    Allgatherv,
    Barrier,
    ExactSum,
)
from cobre_kernels.collective.checks import (
    block_of,
    bytes_of,
    count_of,
    displacement_of,
    hash_tables,
)
from cobre_kernels.collective.comm import COMM  # noqa: F401
from cobre_kernels.collective.reduction import exact_sum
from cobre_kernels.collective.reduction.fold import SUM
from cobre_kernels.collective.status import DISAGREE, OK  # noqa: F401
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import load_relaxed, peek, poke
from cobre_kernels.machine.elements import element_access
from cobre_kernels.machine.kernel import kernel  # noqa: F401
from cobre_kernels.shm.step import next_generation, publish  # noqa: F401
from cobre_kernels.shm.wait import cell_of
from numba import njit

SMALLEST_NORMAL = 2.0**-1022


load, store = element_access(np.float64)
load_octet, store_octet = element_access(np.uint8)


@njit(error_model="numpy")
def sum_rounded_once(comm, call, target, first, stride, size_bytes):
    """Sum the chunks at ``first``, ``first + stride``, ... again, with one rounding at the end.

    Knuth's TwoSum keeps what each addition loses; the last addition adds all that was lost.
    """
    if call.dtype != dtypes.FLOAT64 or call.op != SUM:
        return
    count = size_bytes // call.itemsize
    for i in range(count):
        total, lost = load(first, i), 0.0
        for rank in range(1, comm.size):
            x = load(first + rank * stride, i)
            new = total + x
            part = new - total
            lost += (total - (new - part)) + (x - part)
            total = new
        if np.isfinite(total + lost):
            store(target, i, total + lost)


@njit(error_model="numpy")
def sum_in_pairs(comm, call, target, first, stride, size_bytes):
    """Sum the chunks at ``first``, ``first + stride``, ... again, but in pairs of pairs."""
    if call.dtype != dtypes.FLOAT64 or call.op != SUM:
        return
    count = size_bytes // call.itemsize
    partial = libc.zeroed_words(comm.size)
    for i in range(count):
        for rank in range(comm.size):
            store(partial, rank, load(first + rank * stride, i))
        width = comm.size
        while width > 1:
            for pair in range(width // 2):
                store(partial, pair, load(partial, 2 * pair) + load(partial, 2 * pair + 1))
            if width % 2 == 1:
                store(partial, width // 2, load(partial, width - 1))
            width = (width + 1) // 2
        store(target, i, load(partial, 0))
    libc.release_memory(partial)


@njit
def round_exact(comm, call):
    """Round this rank's part of an exact sum to a float64, before the parts are added."""
    if call.dtype != dtypes.EXACT:
        return
    exact_sum._round(call.send)  # this makes the first of the digits the bits of a float64
    poke(comm.scratch, peek(call.send))
    for word in range(exact_sum.WORDS):
        poke(call.send + 8 * word, 0)
    exact_sum._add(ExactSum(comm.scratch, 1, dtypes.FLOAT64, call.send))


@njit
def alike(comm, rank, generation):
    """Return the generation before if the rank made the same call in it, else this one."""
    cell = cell_of(comm, rank, generation - 1)
    same_signature = load_relaxed(cell.signature) == comm.signature
    is_same = load_relaxed(cell.compared) == comm.compared
    return generation - 1 if same_signature and is_same else generation


@njit
def flip(address, count):
    """Change the first of ``count`` bytes."""
    if count > 0:
        store_octet(address, 0, load_octet(address, 0) ^ np.uint8(1))


@njit
def clear(address, count):
    """Set bytes to zero."""
    for i in range(count):
        store_octet(address, i, np.uint8(0))


@njit
def write_past(address, count):
    """Write a byte past the end, if malloc has rounded the size up and left room for the byte."""
    if count % 16 != 8:
        store_octet(address, count, np.uint8(0))


@njit
def hash_counts(comm, call):
    """Hash the tables of an allgatherv, with the counts in place of the displacements."""
    return hash_tables(
        comm,
        Allgatherv(
            call.send, call.send_count, call.recv, call.recv_count, call.itemsize,
            call.dtype, call.counts, call.counts, call.counts_len, call.counts_len,
        ),
    )  # fmt: skip


@njit
def swap_blocks(call):
    """Exchange the blocks of ranks 0 and 1, up to the length of the shorter block."""
    common = min(bytes_of(call, 0), bytes_of(call, 1))
    a, b = block_of(call, 0), block_of(call, 1)
    for i in range(common):
        of_a, of_b = load_octet(a, i), load_octet(b, i)
        store_octet(a, i, of_b)
        store_octet(b, i, of_a)


@njit
def write_into_gaps(comm, call):
    """Write a byte behind every block, unless another block or the end of ``recv`` is there."""
    for rank in range(comm.size):
        place = displacement_of(call, rank) + count_of(call, rank)
        is_free = place < call.recv_count
        for other in range(comm.size):
            begin = displacement_of(call, other)
            if begin <= place < begin + count_of(call, other):
                is_free = False
        if is_free:
            store_octet(call.recv + place * call.itemsize, 0, np.uint8(0))
