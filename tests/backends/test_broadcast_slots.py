"""A broadcast over shared memory fills the slots of several ranks in one step."""

import numpy as np
import pytest

from cobre_comm import ReduceOp, ShmConfig
from cobre_comm.backends.shm.buffers import choose_buffer_bytes, choose_cast_bytes
from cobre_comm.testing.ranks.outcome import values_of
from tests import forked

SLOT_BYTES = 4096
SMALL = {"COBRE_SHM_BUFFER_BYTES": str(3 * SLOT_BYTES)}


def values(root, nbytes):
    return np.arange(nbytes // 8, dtype=np.int64) * (root + 3) + root + nbytes


def broadcast(comm, root, nbytes):
    """Broadcast, check the data, and return how many steps it took."""
    before = comm._comm.node.generation
    buffer = values(root, nbytes) if comm.rank == root else np.full(nbytes // 8, -1)
    comm.broadcast(buffer, root)
    np.testing.assert_array_equal(buffer, values(root, nbytes))
    return comm._comm.node.generation - before


def at_each_length(comm):
    most = SLOT_BYTES * (comm.size if comm.size > 2 else 1)
    for nbytes in (SLOT_BYTES - 8, SLOT_BYTES + 8, most, most + 8, 3 * most - 8):
        for root in range(comm.size):
            assert broadcast(comm, root, nbytes) == -(-nbytes // most)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_step_fills_the_slots_of_all_ranks_but_of_two(size):
    values_of(forked.ranks("shm", size, at_each_length, env=SMALL))


def in_turn(comm):
    count, size = 3 * SLOT_BYTES // 8 + 5, comm.size
    every = np.arange(size * count) + 7
    for number in range(20):
        broadcast(comm, number % size, 2 * size * SLOT_BYTES + 8 * number)
        gathered = np.zeros(size * count, dtype=np.int64)
        comm.allgather(every.reshape(size, count)[comm.rank] * number, gathered)
        np.testing.assert_array_equal(gathered, every * number)
        summed = (gathered + comm.rank).copy()
        comm.allreduce(summed, summed, ReduceOp.SUM)
        np.testing.assert_array_equal(summed, size * every * number + size * (size - 1) // 2)


@pytest.mark.parametrize("size", [3, 5])
def test_other_collectives_find_their_slots_as_they_left_them(size):
    """Calls follow at once: a fast rank writes slots while a slow rank still reads other slots."""
    values_of(forked.ranks("shm", size, in_turn, env=SMALL))


@pytest.mark.slow
@pytest.mark.ranks(64, timeout=300)
def test_sixty_four_ranks_take_a_megabyte_in_few_steps(comm):
    for root in (0, 63):
        assert broadcast(comm, root, 1_000_000) <= 4  # one step, if ranks share cores


@pytest.mark.parametrize(
    ("size", "spin_us", "expected"),
    [
        (2, 0.0, 2**20),  # one slot
        (3, 0.0, 3 * 2**20),
        (4, 0.0, 4 * 2**20),
        (64, 0.0, 48 * 87_296),  # 48 of 64 slots
        (1024, 0.0, 256 * 16_384),
        (4, 30.0, 2**18),
        (64, 30.0, 3 * 87_296),
    ],
)
def test_bytes_of_a_step(size, spin_us, expected):
    config = ShmConfig(name="/n", rank=0, size=size, spin_us=spin_us)
    assert choose_cast_bytes(config, choose_buffer_bytes(config)) == expected
