"""Ranks that are lost, late or wrong on a node of several ranks, while other nodes wait."""

import signal

import pytest

from cobre_comm import CollectiveFailed
from cobre_comm.testing import run_ranks, run_ranks_outcomes
from cobre_comm.testing.cases.case import OURS
from cobre_comm.testing.cases.faults import struck
from cobre_comm.testing.cases.faults.strike import EXIT_CODE
from cobre_comm.testing.cases.memory import into_regions
from tests.faults import over_nodes
from tests.faults.over_nodes import FOLLOWER, LIMIT_S
from tests.grid import skip_unless_here, slow, timeout_of

LONG = 2**17  # float64: a rank copies so many for longer than it takes to wake another


@pytest.fixture(params=["tcp:0,0,1", *map(slow, ("mpi-mpich:0,0,1", "mpi-openmpi:0,0,1"))])
def nodes(request):
    return skip_unless_here(request.param)


def assert_named(caught, lost):
    """The error names the lost rank, and perhaps ranks that had their own error and have gone."""
    assert isinstance(caught, CollectiveFailed), repr(caught)
    assert lost in caught.ranks, str(caught)


@pytest.mark.parametrize("kind", ["raised", "in_prange"])
def test_follower(nodes, kind, tmp_path):
    fault = struck.complete(struck.at(kind, FOLLOWER), 3, backend=nodes)
    outcomes = run_ranks_outcomes(nodes, 3, over_nodes.struck, "mixed", fault, str(tmp_path))
    struck.check(fault, outcomes, judge=over_nodes.Judge)


@pytest.mark.parametrize("operation", ["fence", "allreduce into a region"])
def test_follower_that_has_ended(nodes, operation):
    first, lost, other = run_ranks_outcomes(nodes, 3, over_nodes.lost_before, operation)
    assert lost.exit_code == EXIT_CODE
    assert_named(first.value, FOLLOWER)
    if operation == "fence":  # of the ranks of a node
        assert other.value is None
    else:
        assert_named(other.value, FOLLOWER)


def test_follower_that_does_not_fetch_the_outcome(nodes):
    """The follower is late to its leader, which has gone when the follower looks."""
    body, env = over_nodes.stopped_before_it_fetches, timeout_of(LIMIT_S)
    first, follower, other = run_ranks(nodes, 3, body, env=env)
    assert_named(first, FOLLOWER)
    assert OURS.timeout_variable(nodes) in str(first)
    assert_named(follower, 0)
    assert isinstance(other, CollectiveFailed)
    assert set(other.ranks) <= {0, FOLLOWER}


LARGE = ("allreduce", "gatherv", "allgatherv", "broadcast")
ONE_NODE = ("allreduce", "allreduce into a region", "gatherv", "allgatherv", "broadcast")


@pytest.mark.parametrize(
    ("backend", "size", "operation", "victim"),
    [
        *(("shm", 3, operation, 2) for operation in ONE_NODE),
        ("tcp:0,0,1", 3, "allreduce", FOLLOWER),  # along a chain
        ("tcp:0,1", 4, "allreduce", 3),  # in stripes, through the staging buffer
        *(("tcp:0,0,1,1x2", 4, operation, 3) for operation in LARGE),  # leads in a lane
        ("tcp:0,0,1,1x2", 4, "allgatherv", 0),
    ],
)
def test_crashed_amid_a_call(backend, size, operation, victim):
    outcomes = run_ranks_outcomes(
        backend, size, over_nodes.crash_amid, operation, victim, env=OURS.environment("small")
    )
    assert outcomes.pop(victim).exit_code == -signal.SIGSEGV
    for outcome in outcomes:
        assert_named(outcome.value, victim)
        assert outcome.value.operation == operation.partition(" ")[0]


def test_long_outputs_of_a_node(nodes):
    """One rank of a node writes a long output while the other sleeps."""
    run_ranks(nodes, 3, into_regions.reduce, "mixed", "all", "f8", LONG)
