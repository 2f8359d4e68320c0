"""Lost ranks where nodes speak over MPI, which does not say that a process has died.

The ranks of the same node see at once that a rank has died, and tell the other nodes. If all ranks
of a node have died, the other nodes learn this at the timeout. Over sockets Open MPI itself aborts
the job when the process at the other end has gone. MPICH over UCX crashes when a liveness query is
sent to a process that has gone; MPICH over OFI does not.
"""

import pytest

from cobre_comm.testing import run_ranks_outcomes
from cobre_comm.testing.cases.faults import struck
from tests.grid import EVERY_RANK_ALONE, skip_unless_here, timeout_of

pytestmark = pytest.mark.slow  # each test starts processes; `make test` runs the suite's cases

SURVIVABLE = ["openmpi", "mpich", "mpich-net"]
OFI = {"MPIR_CVAR_CH4_NETMOD": "ofi"}


def lose(backend, size, kind, victim, folder, limit_s=60.0, env=None):
    skip_unless_here(backend)
    fault = struck.complete(struck.at(kind, victim, limit_s=limit_s), size, backend=backend)
    env = {**timeout_of(limit_s), **(env or {})}
    arguments = struck.struck, "mixed", fault, str(folder)
    return fault, run_ranks_outcomes(backend, size, *arguments, env=env)


@pytest.mark.parametrize("library", SURVIVABLE)
@pytest.mark.parametrize("victim", range(4))
def test_killed_beside_a_rank_of_its_node(library, victim, tmp_path):
    """Ranks of both nodes learn of a death long before the timeout, also of a leader's death."""
    struck.check(*lose(f"mpi-{library}:0,1", 4, "killed", victim, tmp_path))


@pytest.mark.parametrize("library", SURVIVABLE)
def test_killed_alone_on_its_node(library, tmp_path):
    """No rank sees the victim's process, so the victim is late; it ends outside calls of MPI."""
    backend = f"mpi-{library}:{EVERY_RANK_ALONE}"
    struck.check(*lose(backend, 3, "exit_at_once", 1, tmp_path, 1.0, OFI), "COBRE_MPI_TIMEOUT_SECS")
