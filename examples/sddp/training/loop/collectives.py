"""Collectives of the training loop, each with the nanoseconds that it took; and its phases."""

import math

from cobre_kernels.machine.libc import monotonic_ns
from compiled import CALLING, PLAIN
from numba import njit

from cobre_comm import ReduceOp
from training.plan import Block, block_of


@njit(**CALLING)
def my_block(comm, items) -> Block:  # type: ignore
    """Return the block of `items` that this rank has."""
    return block_of(items, comm.rank, comm.size)


@njit(**CALLING)
def enter(comm, number) -> int:  # type: ignore
    """Enter a phase; return the number of the one before."""
    return comm.enter(number)


@njit(**CALLING)
def gather(comm, send, recv, counts, displs) -> int:  # type: ignore
    """Gather blocks from all ranks; return the nanoseconds it took."""
    clock = monotonic_ns()
    comm.allgatherv(send, recv, counts, displs)
    return monotonic_ns() - clock


@njit(**CALLING)
def fence(region) -> int:  # type: ignore
    """Wait until the ranks of the node have written their cuts; return the nanoseconds it took."""
    clock = monotonic_ns()
    region.fence()
    return monotonic_ns() - clock


@njit(**CALLING)
def reduce_all(comm, bound, stats) -> int:  # type: ignore
    """Reduce bound by MIN and statistics by SUM, in place; return the nanoseconds it took."""
    clock = monotonic_ns()
    comm.allreduce(bound, bound, ReduceOp.MIN)
    comm.allreduce(stats, stats, ReduceOp.SUM)
    return monotonic_ns() - clock


@njit(**CALLING)
def add_up(comm, values) -> tuple[float, int]:  # type: ignore
    """Return the exact sum of all ranks' values, rounded once, and the nanoseconds it took."""
    clock = monotonic_ns()
    total = comm.exact_sum(values)
    return total, monotonic_ns() - clock


@njit(**PLAIN)
def estimate(comm, costs, count, line) -> int:  # type: ignore
    """Write mean and 95 % half-width of `count` costs, of which `costs` are this rank's.

    Both are made of exact sums, so they are the same however the costs are split over ranks.
    """
    total, clock = add_up(comm, costs)
    line.mean = total / count
    for i in range(costs.size):
        costs[i] = (costs[i] - line.mean) ** 2
    squares, more = add_up(comm, costs)
    line.half_width = 1.96 * math.sqrt(squares / (count - 1.0) / count) if count > 1.0 else 0.0
    return clock + more
