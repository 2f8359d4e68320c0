"""Ranks that are lost where nodes speak over MPI, which does not tell of the death of a process.

The ranks of the same node see it at once and tell the other nodes; a whole node is missed at the
timeout. Over sockets Open MPI aborts the job itself when the process at the other end has gone, and
MPICH over UCX crashes when a query goes to one; over OFI it does not.
"""

import itertools

import pytest

from cobre_comm import CollectiveFailed
from cobre_comm.testing import run_ranks_outcomes
from cobre_comm.testing.cases.faults import lost_ranks
from cobre_comm.testing.cases.faults.survivors import check_later, check_survivors
from tests.grid import EVERY_RANK_ALONE, skip_unless_here, some, timeout_of

pytestmark = pytest.mark.slow  # each makes processes and waits; `make test` has the suite's own

LIBRARIES = ["openmpi", "mpich", "openmpi-net", "mpich-net"]
SURVIVABLE = ["openmpi", "mpich", "mpich-net"]
OFI = {"MPIR_CVAR_CH4_NETMOD": "ofi"}
SOON_S = 30.0  # jobs take seconds to start and to end


def lose(backend, size, caller, operation, victim, how, timeout_s, env=None):
    skip_unless_here(backend)
    return run_ranks_outcomes(
        backend, size, lost_ranks.wait_for_the_lost, caller, operation, victim, how,
        env={**timeout_of(timeout_s), **(env or {})},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("library", "victim", "operation"),
    some(
        [("openmpi", 0, "allreduce"), ("mpich", 1, "allreduce"), ("mpich-net", 2, "broadcast")],
        itertools.product(SURVIVABLE, range(4), ["allreduce", "broadcast", "allgatherv"]),
    ),
)
def test_killed_beside_a_rank_of_its_node(library, victim, operation):
    """Long before the timeout, also on the other node; also if the leader of its node is lost."""
    outcomes = lose(f"mpi-{library}:0,1", 4, "njit", operation, victim, "kill", 60)
    check_survivors(outcomes, [victim], None, operation)
    assert outcomes[victim].exit_code == -9


@pytest.mark.parametrize("library", SURVIVABLE)
def test_killed_alone_on_its_node(library):
    """No other rank sees its process: it is late."""
    backend = f"mpi-{library}:{EVERY_RANK_ALONE}"
    outcomes = lose(backend, 3, "python", "allreduce", 1, "kill", 1, OFI)
    check_survivors(outcomes, [1], None, "allreduce")
    assert "COBRE_MPI_TIMEOUT_SECS" in str(outcomes[0].value[0])


@pytest.mark.parametrize(
    ("library", "nodes", "how"),
    some(
        [("openmpi", "0,1", "close"), ("mpich", EVERY_RANK_ALONE, "exit")],
        itertools.product(LIBRARIES, [EVERY_RANK_ALONE, "0,1"], ["close", "exit"]),
    ),
)
def test_left_in_good_order(library, nodes, how):
    """A rank that closes its communicator says goodbye, to every node."""
    outcomes = lose(f"mpi-{library}:{nodes}", 3, "python", "barrier", 1, how, 60)
    check_survivors(outcomes, [1], None, "barrier")


@pytest.mark.parametrize(
    ("library", "nodes"),
    [("openmpi", ""), ("mpich", ""), *((library, ":0,1") for library in LIBRARIES)],
)
def test_a_killed_rank_is_lost_to_its_node_and_to_the_others(library, nodes):
    """Its node sees the end of its record lock, and its leader reports it to the other nodes."""
    backend = f"mpi-{library}{nodes}"
    skip_unless_here(backend)
    outcomes = run_ranks_outcomes(
        backend, 3, lost_ranks.wait_for_the_lost, "python", "allreduce", 2, "kill", timeout_s=SOON_S
    )
    assert outcomes[2].exit_code == -9
    for rank in (0, 1):
        assert not outcomes[rank].timed_out
        if not outcomes[rank].ended:
            caught, _, later, took = outcomes[rank].value
            assert isinstance(caught, CollectiveFailed)
            check_later(later, took, str(caught))
