"""One step of a shared-memory collective: publish what this rank calls, await the others.

Every collective is a sequence of steps (see ``layout.py``). The word that says "I am here" carries
what the rank called, so agreement is checked on the cache line that has to move anyway.
"""

from cobre_kernels import layout, libc
from cobre_kernels.atomics import (
    load_acquire,
    load_relaxed,
    load_seq_cst,
    peek,
    poke,
    store_relaxed,
    store_release,
    store_seq_cst,
)
from cobre_kernels.guard import leave, leave_broken
from cobre_kernels.routine import routine
from cobre_kernels.status import DISAGREE, OK
from cobre_kernels.wait import cell_of, rank_block, wait_for


@routine
def next_generation(state):
    """Number of the step that this rank enters next."""
    return peek(state + layout.GENERATION) + 1


@routine
def payload_of(state, rank, generation):
    """Address of the INLINE_BYTES of data beside a rank's flag."""
    return cell_of(state, rank, generation) + layout.PAYLOAD


@routine
def stripe_of(state, rank, generation):
    """Address of a rank's result stripe for a generation."""
    buffer = peek(state + layout.BUFFERS) + rank * peek(state + layout.BUFFER_STRIDE)
    chunk = peek(state + layout.CHUNK_BYTES)
    return buffer + 2 * chunk + (generation & 1) * (chunk // 2)


@routine
def publish(state, generation, kind, length, detail):
    """Enter the step: everything this rank wrote for it becomes readable to the others."""
    poke(state + layout.GENERATION, generation)
    rank = peek(state + layout.RANK)
    cell = cell_of(state, rank, generation)
    store_relaxed(cell + layout.KIND, kind)
    store_relaxed(cell + layout.LENGTH, length)
    store_relaxed(cell + layout.DETAIL, detail)
    # Release: pairs with the load-acquire in await_rank and wait.has_arrived, and publishes the
    # three words above, the payload and the slot. Sequentially consistent because of the load of
    # SLEEPERS below: see wait._sleep.
    store_seq_cst(cell + layout.ARRIVED, generation)
    if load_seq_cst(rank_block(state, rank) + layout.SLEEPERS) != 0:
        libc.futex_wake_all(cell + layout.ARRIVED)


@routine
def await_rank(state, rank, generation, kind, length):
    """Wait until ``rank`` is in the step; return OK, DISAGREE, or how the wait failed."""
    cell = cell_of(state, rank, generation)
    # Acquire: pairs with the store in publish.
    if load_acquire(cell + layout.ARRIVED) != generation:
        outcome = wait_for(state, rank, generation)
        if outcome != OK:
            return outcome
    same_kind = load_relaxed(cell + layout.KIND) == kind
    same_length = load_relaxed(cell + layout.LENGTH) == length
    return OK if same_kind and same_length else DISAGREE


@routine
def await_all(state, generation, kind, length):
    """Wait for every other rank, beginning with the next one, so that no cell is a hot spot.

    Ranks that disagree are awaited all the same: each of them must learn of it.
    """
    size = peek(state + layout.COMM_SIZE)
    rank = peek(state + layout.RANK)
    worst = OK
    for _ in range(size - 1):
        rank += 1
        if rank == size:
            rank = 0
        outcome = await_rank(state, rank, generation, kind, length)
        if outcome == DISAGREE:
            worst = DISAGREE
        elif outcome != OK:
            return outcome
    return worst


@routine
def synchronise(state, kind, length, detail):
    """A whole step without data."""
    generation = next_generation(state)
    publish(state, generation, kind, length, detail)
    return await_all(state, generation, kind, length)


@routine
def finish(state, outcome, kind):
    """Leave the collective: free for the next one, or broken with the cause on record."""
    if outcome == OK:
        leave(state)
    else:
        record_calls(state)
        announce(state, layout.FAILED)
        leave_broken(state, outcome, kind)
    return outcome


@routine
def record_calls(state):
    """Keep what every rank called in this step, before anything can overwrite it."""
    generation = peek(state + layout.GENERATION)
    for rank in range(peek(state + layout.COMM_SIZE)):
        cell = cell_of(state, rank, generation)
        record = state + layout.RANK_RECORDS + rank * layout.RECORD_BYTES
        here = load_acquire(cell + layout.ARRIVED) == generation
        poke(record + layout.RECORD_KIND, load_relaxed(cell + layout.KIND) if here else 0)
        poke(record + layout.RECORD_LENGTH, load_relaxed(cell + layout.LENGTH) if here else 0)
        poke(record + layout.RECORD_DETAIL, load_relaxed(cell + layout.DETAIL) if here else 0)


@routine
def announce(state, condition):
    """Tell the others that this rank will enter no further step, and wake who waits for it."""
    rank = peek(state + layout.RANK)
    block = rank_block(state, rank)
    # Pairs with the load-acquire in wait._why_missing.
    store_release(block + layout.CONDITION, condition)
    for parity in range(2):
        libc.futex_wake_all(cell_of(state, rank, parity) + layout.ARRIVED)
