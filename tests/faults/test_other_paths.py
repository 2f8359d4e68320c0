"""Rare paths: no futex, a long spin, a communicator for each thread, no compilation."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cobre_kernels.tcp import chain, ring

from cobre_comm import ReduceOp
from cobre_comm.testing import RankPool
from cobre_comm.testing.cases import identity
from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.collectives import allgatherv, allreduce, barrier, broadcast
from cobre_comm.testing.cases.memory import regions
from cobre_comm.testing.cases.mixed import sequences
from cobre_comm.testing.ranks.outcome import values_of
from tests import forked
from tests.grid import skip_unless_here, slow

INTERPRETED = {"NUMBA_DISABLE_JIT": "1"}
PORTABLE = {"COBRE_TEST_PORTABLE_WAIT": "1"}


def essentials(comm, caller):
    sequences.four_in_a_row(comm, caller)
    allgatherv.gather_every_layout(comm, caller)
    allreduce.reduce_lengths(comm, caller, "f8", ReduceOp.MAX, [1, 13, 3000])
    sequences.random_operations(comm, caller, 5, 100, 300)
    barrier.late_rank_delays_all(comm, caller, 0, 0.2)


@pytest.mark.parametrize("size", [slow(1), slow(2), 4])
def test_portable_essentials(caller, size):
    values_of(forked.ranks("shm", size, essentials, caller, env=PORTABLE))


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["shm", slow("tcp-flat"), slow("mpi-mpich:0,1")])
def test_long_spin(pools, backend):
    """A wait reads the clock millions of times; an old defect took more stack at each reading."""
    env = {"COBRE_COMM_SPIN_US": "10000000"}
    times = pools.get(backend, 2).run(barrier.late_rank_delays_all, "njit", 0, 4.0, env=env)
    assert min(left for _, left in times) >= max(entered for entered, _ in times)


@pytest.mark.ranks(2)
def test_each_thread_its_own_communicator(comm, caller):
    """Three threads use three communicators, which do not disturb one another."""
    comms = [comm.split_local() for _ in range(3)]

    def work(own, seed):
        send, recv = np.full(50, own.rank + seed + 1.0), np.zeros(50)
        for _ in range(200):
            calls(caller, comm.rank).allreduce(own, send, recv, ReduceOp.SUM)
            assert recv[7] == sum(r + seed + 1.0 for r in range(own.size))

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(work, comms, range(3)))
    for own in comms:
        own.close()


@pytest.fixture(
    scope="module", params=["shm", *map(slow, ("tcp-flat", "mpi-mpich")), "mpi-mpich:0,1"]
)
def interpreted(request):
    skip_unless_here(request.param)
    with RankPool(request.param, 2, env=INTERPRETED) as pool:
        yield pool


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        (barrier.three_barriers, ("python",)),
        (allreduce.reduce_lengths, ("python", "f8", ReduceOp.SUM, [1, 12, 13, 100])),
        (allreduce.reduce_lengths, ("python", "i4", ReduceOp.MIN, [1, 40])),
        (allreduce.reduce_lengths, ("python", "f8", ReduceOp.MAX, [5])),
        (allgatherv.gather_every_layout, ("python",)),
        (sequences.four_in_a_row, ("python",)),
        (regions.populate_on_leader, ("f8", 100)),
        (identity.identity, ()),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_without_compilation(interpreted, body, arguments):
    interpreted.run(body, *arguments, timeout_s=60)


def small_frames(comm, frame_bytes):
    ring.FRAME_BYTES = frame_bytes
    chain.LEAST_PIECE_BYTES, chain.CHUNK_BYTES = 128, 256
    allgatherv.gather_every_layout(comm, "python")
    few = (1, 15, 16, 17, 31, 32, 33, 128, 129)
    for length in few if frame_bytes == 1 else (*few, 1000):
        allreduce.reduce(comm, "python", "f8", ReduceOp.SUM, length)
        allreduce.reduce_in_place(comm, "python", "f8", ReduceOp.MIN, length)
        broadcast.cast(comm, "python", "f4", length, length % comm.size)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3, 4])
def test_many_small_frames(size):
    """Compiled kernels put up to a gigabyte in a frame, so kernels in Python send small frames."""
    env = {"COBRE_TCP_EAGER_BYTES": "0"}
    with RankPool("tcp-flat", size, env=INTERPRETED) as pool:
        for frame_bytes in (1, 40, 64):
            pool.run(small_frames, frame_bytes, env=env)
