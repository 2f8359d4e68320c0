import pytest

from cobre_comm.testing.conformance import LateRankTests
from cobre_comm.testing.conformance.bodies import sync
from tests.grid import OUR_GRID, slow


class TestLateRank(LateRankTests):
    grid = OUR_GRID


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["shm", slow("tcp"), slow("mpi-mpich:0,1")])
def test_a_long_spin(pools, backend):
    """Millions of looks at the clock in one wait; each once took a little of the stack."""
    env = {"COBRE_COMM_SPIN_US": "10000000"}
    times = pools.get(backend, 2).run(sync.late_rank_delays_all, "njit", 0, 4.0, env=env)
    assert min(left for _, left in times) >= max(entered for entered, _ in times)
