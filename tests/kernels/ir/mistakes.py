"""Parts of kernels with something wrong in them, and what has to be said of each."""

from cobre_kernels.collective.comm import COMM, IDLE
from cobre_kernels.machine.atomics import (
    load_acquire,
    load_relaxed,
    load_seq_cst,
    peek,
    poke,
    store_relaxed,
    store_release,
    store_seq_cst,
)
from cobre_kernels.machine.copy import move
from cobre_kernels.shm.control import FAILED
from cobre_kernels.shm.wait import cell_of

ARGUMENTS = (COMM, int, int)


def plain_store(comm, rank, generation):
    poke(cell_of(comm, rank, generation).arrived, generation)


def relaxed_arrival(comm, rank, generation):
    store_relaxed(cell_of(comm, rank, generation).arrived, generation)


def arrival_without_total_order(comm, rank, generation):
    store_release(cell_of(comm, rank, generation).arrived, generation)


def plain_look(comm, rank, generation):
    return peek(cell_of(comm, rank, generation).arrived) == generation


def relaxed_look(comm, rank, generation):
    return load_relaxed(cell_of(comm, rank, generation).arrived) == generation


def plain_look_at_every_rank(comm, rank, generation):
    worst = 0
    for other in range(comm.size):
        worst = max(worst, peek(cell_of(comm, other, generation).signature))
    return worst


def acquiring_look_at_sleepers(comm, rank, generation):
    return load_acquire(comm.control.blocks[rank].sleepers)


def relaxed_condition(comm, rank, generation):
    store_relaxed(comm.control.blocks[rank].condition, FAILED)


def copy_over_a_word(comm, rank, generation):
    move(cell_of(comm, rank, generation).payload - 8, comm.scratch, 8)


def atomic_payload(comm, rank, generation):
    store_relaxed(cell_of(comm, rank, generation).payload, generation)


def unaligned(comm, rank, generation):
    store_seq_cst(cell_of(comm, rank, generation).arrived + 4, generation)


def variable_word(comm, rank, generation):
    return peek(comm.control.blocks[0].pid + 8 * rank)


def address_through_memory(comm, rank, generation):
    poke(comm.scratch, cell_of(comm, rank, generation).arrived)


def address_from_nowhere(comm, rank, generation):
    return load_seq_cst(peek(comm.scratch))


def address_in_disguise(comm, rank, generation):
    return load_acquire((cell_of(comm, rank, generation).arrived * 3 ^ rank) // 3)


def plain_guard(comm, rank, generation):
    poke(comm.guard, IDLE)


MISTAKES = {
    plain_store: "Cell.arrived: store plain",
    relaxed_arrival: "Cell.arrived: store monotonic",
    arrival_without_total_order: "Cell.arrived: store release",
    plain_look: "Cell.arrived: load plain",
    relaxed_look: "Cell.arrived: load monotonic",
    plain_look_at_every_rank: "Cell.signature: load plain",
    acquiring_look_at_sleepers: "RankBlock.sleepers: load acquire",
    relaxed_condition: "RankBlock.condition: store monotonic",
    copy_over_a_word: "Cell.detail: store",
    atomic_payload: "data: store monotonic",
    unaligned: r"Cell.arrived\+4: store seq_cst",
    variable_word: "unknown .*: load plain",
    address_through_memory: "a shared address is stored",
    address_from_nowhere: "unknown .*: load seq_cst",
    address_in_disguise: "unknown .*: load acquire",
    plain_guard: "Comm.guard: store plain",
}
