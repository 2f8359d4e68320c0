"""The faults of the suite on every backend, and what only some of ours can meet."""

import signal

import pytest

from cobre_comm.testing import conformance
from cobre_comm.testing.conformance.bodies import processes, sync
from cobre_comm.testing.conformance.signals import check_signal
from tests.grid import OUR_GRID, slow


class TestDisagreement(conformance.DisagreementTests):
    grid = OUR_GRID


class TestLateRank(conformance.LateRankTests):
    grid = OUR_GRID

    @pytest.mark.slow
    @pytest.mark.parametrize("backend", ["shm", slow("tcp"), slow("mpi-mpich:0,1")])
    def test_long_spin(self, pools, backend):
        """Millions of looks at the clock in one wait; each once took a little of the stack."""
        env = {"COBRE_COMM_SPIN_US": "10000000"}
        times = pools.get(backend, 2).run(sync.late_rank_delays_all, "njit", 0, 4.0, env=env)
        assert min(left for _, left in times) >= max(entered for entered, _ in times)


class TestLostRank(conformance.LostRankTests):
    grid = OUR_GRID


class TestMidCollective(conformance.MidCollectiveTests):
    grid = OUR_GRID


class TestProperty(conformance.PropertyTests):
    grid = OUR_GRID


class TestSignal(conformance.SignalTests):
    grid = OUR_GRID

    @pytest.mark.parametrize("operation", ["allreduce", "broadcast"])
    def test_interrupt_on_the_portable_path(self, pools, caller, operation):
        portable = {"COBRE_COMM_PORTABLE_WAIT": "1"}
        check_signal(pools, "shm", caller, operation, signal.SIGINT, portable)


class TestThreadAndFork(conformance.ThreadAndForkTests):
    grid = OUR_GRID

    def test_each_thread_its_own_communicator(self, pools, caller):
        pools.get("shm", 2).run(processes.threads_with_their_own, caller, 200)
