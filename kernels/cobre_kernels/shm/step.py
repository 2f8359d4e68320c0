"""One step of a shared-memory collective: a rank publishes its call, and awaits the others.

Every collective is a sequence of steps (``control.py``). In a rank's cell, the flag ``arrived`` and
the words of the call lie on one cache line. So ranks compare calls on a line that has to move
anyway.

In this file a rank is given by its number on its node (``comm.node``).
"""

from typing import NamedTuple

from cobre_kernels.collective.calls import CALLED, ShownWords
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.seeing.journal import note_entered
from cobre_kernels.collective.status import DISAGREE, OK, USE_SLOTS
from cobre_kernels.collective.stop import hear
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import (
    load_acquire,
    load_relaxed,
    load_seq_cst,
    store_relaxed,
    store_seq_cst,
)
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.shm.control import HAS_CLOSED, IN_REGION
from cobre_kernels.shm.wait import cell_of, wait_for


class NodeStep(NamedTuple):
    """A step on a node among several nodes; a rank shows the first three words in the step."""

    signature: int
    compared: int
    count: int
    grace_ns: int  # how much longer than the timeout this rank waits


@routine
def next_generation(comm):
    """Return the number of the step that this rank enters next."""
    return comm.node.generation + 1


@routine
def publish(comm, generation, shown):
    """Enter the step, so that other ranks can read all that this rank has written for the step."""
    node = comm.node
    node.generation = generation
    cell = cell_of(comm, node.rank, generation)
    store_relaxed(cell.signature, shown.signature)
    store_relaxed(cell.compared, shown.compared)
    store_relaxed(cell.count, shown.count)
    # Sequentially consistent, because of the load of sleepers below (wait._sleep). This store is a
    # release too, which pairs with the load-acquire in await_rank and wait.has_arrived: it
    # publishes the three words above, the payload and the slot.
    store_seq_cst(cell.arrived, generation)
    if load_seq_cst(node.control.blocks[node.rank].sleepers) != 0:
        libc.futex_wake_all(cell.arrived)
    if comm.unnoted != 0:
        note_entered(comm)


@routine
def await_rank(comm, rank, generation, shown):
    """Wait until ``rank`` is in the step; return an answer, or how the wait failed.

    An answer is OK, DISAGREE, or USE_SLOTS if only one of the two ranks has an output in a region.
    """
    cell = cell_of(comm, rank, generation)
    # Acquire: pairs with the store in publish.
    if load_acquire(cell.arrived) != generation:
        outcome = wait_for(comm, rank, generation)
        if outcome != OK:
            return outcome
    difference = load_relaxed(cell.signature) ^ shown.signature
    is_same = load_relaxed(cell.compared) == shown.compared
    if difference != 0:
        difference = hear(comm, difference)
    if difference == 0 and is_same:
        return OK
    return USE_SLOTS if difference == IN_REGION and is_same else DISAGREE


@routine
def has_come(outcome):
    """Tell whether the awaited rank is in the step, so that the next one can be awaited."""
    return outcome in (OK, DISAGREE, USE_SLOTS)


@routine
def await_all(comm, generation, shown):
    """Wait for every other rank, the next one first, so that not all begin at the same cell.

    If a rank disagrees, this rank still awaits all others, because each rank must learn of the
    disagreement.
    """
    rank, size = comm.node.rank, comm.node.size
    worst = OK
    for _ in range(size - 1):
        rank += 1
        if rank == size:
            rank = 0
        outcome = await_rank(comm, rank, generation, shown)
        if outcome != OK:
            if not has_come(outcome):
                return outcome
            worst = max(worst, outcome)
    return worst


@routine
def synchronise(comm, shown):
    """Go through a whole step: publish this rank's cell and slot, and await all other ranks."""
    generation = next_generation(comm)
    publish(comm, generation, shown)
    return await_all(comm, generation, shown)


@kernel(COMM, NodeStep)
def node_step_kernel(comm, call):
    """Go through a step with the ranks of this node, where there are several nodes."""
    comm.wait.grace_ns = call.grace_ns
    return synchronise(comm, ShownWords(call.signature, call.compared, call.count))


@kernel(COMM)
def announce_closed_kernel(comm):
    """Tell the other ranks that this rank has closed its communicator."""
    announce(comm, HAS_CLOSED)
    return OK


@routine
def record_calls(comm):
    """Keep the call of every rank of this step, before anything can overwrite it."""
    node = comm.node
    generation = node.generation
    for rank in range(node.size):
        cell = cell_of(comm, rank, generation)
        failure = comm.failures[node.names[rank]]
        here = load_acquire(cell.arrived) == generation
        failure.signature = load_relaxed(cell.signature) & CALLED if here else 0
        failure.compared = load_relaxed(cell.compared) if here else 0
        failure.count = load_relaxed(cell.count) if here else 0


@routine
def announce(comm, condition):
    """Tell the other ranks that this rank will enter no further step; wake those that sleep."""
    # A release, which pairs with the load-acquire in wait._why_missing. Sequentially consistent,
    # because of the load of writing that follows in reading.await_writers.
    store_seq_cst(comm.node.control.blocks[comm.node.rank].condition, condition)
    for parity in range(2):
        libc.futex_wake_all(cell_of(comm, comm.node.rank, parity).arrived)
