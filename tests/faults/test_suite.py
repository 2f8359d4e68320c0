"""What only some of our backends can meet, beside the faults of the table of cases."""

import signal

import pytest

from cobre_comm import CollectiveFailed
from cobre_comm.testing.cases import barrier
from cobre_comm.testing.cases.faults import lost_ranks, signals, threads_and_forks
from cobre_comm.testing.cases.faults.survivors import SLACK_S, value_of
from tests.grid import slow


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["shm", slow("tcp"), slow("mpi-mpich:0,1")])
def test_long_spin(pools, backend):
    """Millions of looks at the clock in one wait; each once took a little of the stack."""
    env = {"COBRE_COMM_SPIN_US": "10000000"}
    times = pools.get(backend, 2).run(barrier.late_rank_delays_all, "njit", 0, 4.0, env=env)
    assert min(left for _, left in times) >= max(entered for entered, _ in times)


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_death_is_seen_while_spinning(pools, backend):
    """Long before the spin is over."""
    env = {"COBRE_COMM_SPIN_US": "60000000"}
    outcomes = pools.get(backend, 2).run_outcomes(lost_ranks.kill_and_tell, "njit", env=env)
    killed_at, caught, at = value_of(outcomes, 0)
    assert isinstance(caught, CollectiveFailed)
    assert at - killed_at < SLACK_S


@pytest.mark.parametrize("operation", ["allreduce", "broadcast"])
def test_interrupt_on_the_portable_path(pools, caller, operation, tmp_path):
    portable = {"COBRE_COMM_PORTABLE_WAIT": "1"}
    arguments = signals.interrupted, caller, operation, signal.SIGINT, str(tmp_path)
    values = pools.get("shm", 3).run(*arguments, env=portable, fresh=True)
    signals.check_interrupted(values, signal.SIGINT)


def test_each_thread_its_own_communicator(pools, caller):
    pools.get("shm", 2).run(threads_and_forks.threads_with_their_own, caller, 200)
