"""The wait without futex, and all the logic without compilation."""

import pytest

from cobre_comm import ReduceOp
from cobre_comm.testing import RankPool, run_ranks_outcomes
from cobre_comm.testing.cases import allgatherv, allreduce, barrier, identity, regions
from cobre_comm.testing.cases.faults import late_ranks, lost_ranks
from cobre_comm.testing.cases.faults.survivors import check_survivors, check_timeout
from cobre_comm.testing.cases.mixed import sequences
from tests.faults.tcp import stress_bodies
from tests.grid import skip_unless_here, slow

INTERPRETED = {"NUMBA_DISABLE_JIT": "1"}
PORTABLE = {"COBRE_COMM_PORTABLE_WAIT": "1"}


@pytest.mark.parametrize("size", [slow(1), slow(2), 4])
def test_portable_essentials(pools, caller, size):
    pool = pools.get("shm", size)
    pool.run(sequences.four_in_a_row, caller, env=PORTABLE)
    pool.run(allgatherv.gather_every_layout, caller, env=PORTABLE)
    pool.run(allreduce.reduce_lengths, caller, "f8", ReduceOp.MAX, [1, 13, 3000], env=PORTABLE)
    pool.run(sequences.random_operations, caller, 5, 100, 300, env=PORTABLE)
    pool.run(barrier.late_rank_delays_all, caller, 0, 0.2, env=PORTABLE)


@pytest.mark.parametrize("operation", ["allreduce", "broadcast"])
def test_portable_kill(caller, operation):
    outcomes = run_ranks_outcomes(
        "shm", 3, lost_ranks.wait_for_the_lost, caller, operation, 1, "kill", env=PORTABLE
    )
    check_survivors(outcomes, [1], None, operation)


def test_portable_timeout(pools, caller, tmp_path):
    env = {**PORTABLE, "COBRE_SHM_TIMEOUT_SECS": "1"}
    arguments = late_ranks.late, caller, "barrier", (1,), str(tmp_path)
    values = pools.get("shm", 3).run(*arguments, env=env, fresh=True)
    check_timeout(values[0][0], (1,), "COBRE_SHM_TIMEOUT_SECS")


@pytest.fixture(scope="module", params=["shm", "tcp", slow("mpi-mpich"), "mpi-mpich:0,1"])
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


@pytest.mark.parametrize("size", [slow(2), 3, slow(4)])
def test_many_small_frames(size):
    """A gigabyte makes one frame; without compilation a few bytes can."""
    env = {"COBRE_TCP_STAR_BYTES": "0"}
    with RankPool("tcp", size, env=INTERPRETED) as pool:
        for frame_bytes in (1, 40, 64):
            pool.run(stress_bodies.small_frames, frame_bytes, env=env)
