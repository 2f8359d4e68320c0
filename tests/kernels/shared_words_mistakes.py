"""Parts of kernels with something wrong in them, and what has to be said of each."""

from cobre_kernels import layout
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
from cobre_kernels.copy import move
from cobre_kernels.shm.step import payload_of
from cobre_kernels.wait import cell_of, rank_block


def plain_store(state, rank, generation):
    poke(cell_of(state, rank, generation) + layout.ARRIVED, generation)


def relaxed_arrival(state, rank, generation):
    store_relaxed(cell_of(state, rank, generation) + layout.ARRIVED, generation)


def arrival_without_total_order(state, rank, generation):
    store_release(cell_of(state, rank, generation) + layout.ARRIVED, generation)


def plain_look(state, rank, generation):
    return peek(cell_of(state, rank, generation) + layout.ARRIVED) == generation


def relaxed_look(state, rank, generation):
    return load_relaxed(cell_of(state, rank, generation) + layout.ARRIVED) == generation


def plain_look_at_every_rank(state, rank, generation):
    worst = 0
    for other in range(peek(state + layout.COMM_SIZE)):
        worst = max(worst, peek(cell_of(state, other, generation) + layout.KIND))
    return worst


def acquiring_look_at_sleepers(state, rank, generation):
    return load_acquire(rank_block(state, rank) + layout.SLEEPERS)


def relaxed_condition(state, rank, generation):
    store_relaxed(rank_block(state, rank) + layout.CONDITION, layout.FAILED)


def copy_over_a_word(state, rank, generation):
    move(payload_of(state, rank, generation) - 8, state, 8)


def atomic_payload(state, rank, generation):
    store_relaxed(payload_of(state, rank, generation), generation)


def unaligned(state, rank, generation):
    store_seq_cst(cell_of(state, rank, generation) + layout.ARRIVED + 4, generation)


def variable_word(state, rank, generation):
    return peek(rank_block(state, 0) + 8 * rank)


def address_through_memory(state, rank, generation):
    poke(state + layout.SCRATCH, cell_of(state, rank, generation))


def address_from_nowhere(state, rank, generation):
    return load_seq_cst(peek(state + layout.SCRATCH))


def address_in_disguise(state, rank, generation):
    return load_acquire((cell_of(state, rank, generation) * 3 ^ rank) // 3)


def plain_guard(state, rank, generation):
    poke(state + layout.GUARD, layout.IDLE)


MISTAKES = {
    plain_store: "ARRIVED: store plain",
    relaxed_arrival: "ARRIVED: store monotonic",
    arrival_without_total_order: "ARRIVED: store release",
    plain_look: "ARRIVED: load plain",
    relaxed_look: "ARRIVED: load monotonic",
    plain_look_at_every_rank: "KIND: load plain",
    acquiring_look_at_sleepers: "SLEEPERS: load acquire",
    relaxed_condition: "CONDITION: store monotonic",
    copy_over_a_word: "DETAIL: store",
    atomic_payload: "data: store monotonic",
    unaligned: r"cell\+4: store seq_cst",
    variable_word: "unknown .*: load plain",
    address_through_memory: "a shared address is stored",
    address_from_nowhere: "unknown .*: load seq_cst",
    address_in_disguise: "unknown .*: load acquire",
    plain_guard: "GUARD: store plain",
}
