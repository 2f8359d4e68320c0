"""The rank-ordered fold of contributions that lie in node-major order."""

from cobre_kernels import layout
from cobre_kernels.collective.fold import fold
from cobre_kernels.machine.atomics import peek
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi.table import place_of

BLOCK_BYTES = 8192  # the accumulator of a fold stays in the first-level cache


@routine
def fold_contributions(state, mpi, received, target, length, stride, itemsize, dtype, op):
    """Fold ``length`` bytes of every rank, ``stride`` bytes apart, into ``target``."""
    for begin in range(0, length, BLOCK_BYTES):
        block = min(BLOCK_BYTES, length - begin)
        move(target + begin, received + place_of(mpi, 0) * stride + begin, block)
        for rank in range(1, peek(state + layout.COMM_SIZE)):
            source = received + place_of(mpi, rank) * stride + begin
            fold(state, dtype, op, target + begin, source, block // itemsize)
