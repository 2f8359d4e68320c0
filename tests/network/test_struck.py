"""A rank on one of several hosts is killed or stopped, or its host's cable is pulled.

No packet tells of a cable: the timeout ends the collective on both sides of the cut.
"""

import contextlib
import itertools
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from cobre_comm import CollectiveFailed
from cobre_comm.testing.cases.calls import OPERATIONS
from cobre_comm.testing.cases.faults.calling import meet_failure, prepare
from cobre_comm.testing.cases.faults.survivors import check_later
from tests.grid import OUR_GRID, pairs, skip_unless_here
from tests.network.conftest import LAYOUTS
from tests.network.test_collectives import gather_large

in_long_runs = pytest.mark.slow  # each makes processes and waits; `make test` has the suite's own

DEADLINE_S = 60
LIMIT_S = 2
LIMIT = OUR_GRID.timeout_of(LIMIT_S)
STOPPED_S = 4 * LIMIT_S
LARGE = 1_000_000  # float64 per rank: some seconds at 50 Mbit/s
# A victim that leads its node, which is rank 0's or not; and one that follows.
LEADERS = {"one each": 2, "2+2": 2, "3+1": 0, "interleaved": 1, "1+2+4": 3}
FOLLOWERS = {"2+2": 3, "3+1": 1, "interleaved": 2, "1+2+4": 6}
FACTORS = {
    "kind": ["killed", "stopped", "cut"],
    "victims": [(name, rank) for ranks in (LEADERS, FOLLOWERS) for name, rank in ranks.items()],
    "operation": OPERATIONS,
    "caller": ["python", "njit"],
    "length": [5, 20_000],
}
PRODUCT = [dict(zip(FACTORS, row, strict=True)) for row in itertools.product(*FACTORS.values())]
STRUCK = [tuple(row.values()) for row in pairs(PRODUCT)]
# Nodes of two ranks, on two hosts: one that leads, and one that follows, on the other host.
PAIRS = {"leader": 1, "follower": 2}
TRANSPORTS = ["tcp", "mpi-openmpi-net:0,1", "mpi-mpich-net:0,1"]
TURNS = 4  # for a report as many as you like; 20 take the better part of an hour
ROWS = list(itertools.product(FACTORS["kind"], PAIRS, TRANSPORTS, range(TURNS)))
EVERYDAY = [("killed", "follower", "mpi-openmpi-net:0,1", 0), ("cut", "leader", "tcp", 0)]


def _act_when_flowing(host, octets, actions):
    """Act on a host once so many bytes have passed its cable."""
    before = sum(host.traffic())
    deadline = time.monotonic() + DEADLINE_S / 2
    while sum(host.traffic()) - before < octets:
        assert time.monotonic() < deadline, "nothing flows"
        time.sleep(0.02)
    for action in actions:
        action()


@contextlib.contextmanager
def once_flowing(host, octets, *actions):
    with ThreadPoolExecutor(1) as executor:
        acted = executor.submit(_act_when_flowing, host, octets, actions)
        yield
        acted.result()


def repeat_until_failure(comm, caller, operation, length):
    """Return a collective's error, its time, the errors of later calls, and their seconds."""
    prepare(comm, caller)
    while True:
        met = meet_failure(comm, caller, operation, length=length)
        if met[0] is not None:
            return met


class Stroke:
    """A fault that strikes a rank, and perhaps all ranks of its host."""

    def __init__(self, kind, places, victim, backend="tcp"):
        self.kind, self.places, self.victim, self.backend = kind, places, victim, backend
        self.struck_at, self.aborted = 0.0, set()
        cut_off = {rank for rank, place in enumerate(places) if place == places[victim]}
        self.lost = cut_off if kind == "cut" else {victim}
        self.others = set(range(len(places))) - self.lost

    def actions(self, pool, host):
        pid = pool.pids[self.victim]
        if self.kind == "cut":
            return [self._note, host.unplug]
        if self.kind == "killed":
            return [self._note, lambda: os.kill(pid, signal.SIGKILL)]
        return [
            self._note,
            lambda: os.kill(pid, signal.SIGSTOP),
            lambda: time.sleep(STOPPED_S),
            lambda: os.kill(pid, signal.SIGCONT),
        ]

    def _note(self):
        self.struck_at = time.monotonic()

    def run(self, pool, hosts, octets, caller, operation, length):
        """Repeat a collective until it fails; return the outcome of each rank."""
        pool.run(gather_large, caller, 10, timeout_s=DEADLINE_S)
        host = hosts[self.places[self.victim]]
        with once_flowing(host, octets, *self.actions(pool, host)):
            outcomes = pool.run_outcomes(
                repeat_until_failure, caller, operation, length,
                env=LIMIT, fresh=True, timeout_s=DEADLINE_S,
            )  # fmt: skip
        self._except_aborted(outcomes)
        for outcome in outcomes:
            self._check(outcome, operation)
        return outcomes

    def _except_aborted(self, outcomes):
        """Count as lost each rank that Open MPI ends when a socket to a dead process closes."""
        if self.kind == "killed" and "openmpi" in self.backend:
            self.aborted = {o.rank for o in outcomes if o.ended and "Socket closed" in o.output}
            self.lost = {self.victim} | self.aborted
            self.others -= self.aborted

    def _check(self, outcome, operation):
        if outcome.rank == self.victim and self.kind == "killed":
            assert outcome.exit_code == -signal.SIGKILL
            return
        if outcome.rank in self.lost and self.kind == "killed":
            assert outcome.exit_code > 0, outcome.describe()
            return
        assert outcome.ok, outcome.describe()
        caught, _, later, took = outcome.value
        assert isinstance(caught, CollectiveFailed), caught
        assert caught.operation == operation
        assert all(f"rank {rank}" in str(caught) for rank in caught.ranks)
        assert self.kind != "cut" or OUR_GRID.timeout_variable(self.backend) in str(caught)
        check_later(later, took, str(caught))


def named(outcome):
    return set(outcome.value[0].ranks)


def lost_are_named(stroke, outcomes):
    for rank in stroke.others:
        assert named(outcomes[rank]), outcomes[rank]
        assert named(outcomes[rank]) <= stroke.lost, outcomes[rank]
    for rank in stroke.lost if stroke.kind == "cut" else ():
        assert named(outcomes[rank]) & stroke.others, outcomes[rank]


@in_long_runs
@pytest.mark.parametrize("turn", range(len(STRUCK)))
def test_struck(hosted_pools, hosts, turn):
    """All others name the lost ranks alone; beyond a cut cable, they name some of its far side."""
    kind, (layout, victim), operation, caller, length = STRUCK[turn]
    stroke = Stroke(kind, LAYOUTS[layout], victim)
    outcomes = stroke.run(
        hosted_pools(LAYOUTS[layout]), hosts, 100_000 + 10_000 * turn, caller, operation, length
    )
    lost_are_named(stroke, outcomes)


@pytest.mark.parametrize(
    ("kind", "role", "backend", "turn"),
    [row if row in EVERYDAY else pytest.param(*row, marks=pytest.mark.slow) for row in ROWS],
)
def test_struck_pair(hosted_pools, hosts, record_property, kind, role, backend, turn):
    """Ranks are struck over each transport, in each operation, and at several moments."""
    pool = hosted_pools(LAYOUTS["interleaved"], skip_unless_here(backend))
    stroke = Stroke(kind, LAYOUTS["interleaved"], PAIRS[role], backend)
    operation, caller = OPERATIONS[turn % len(OPERATIONS)], ("python", "njit")[turn % 2]
    try:
        outcomes = stroke.run(pool, hosts, 100_000 + 10_000 * turn, caller, operation, 5)
    finally:
        if kind == "cut" and backend != "tcp":
            pool.end()
    lost_are_named(stroke, outcomes)
    took_s = [outcomes[rank].value[1] - stroke.struck_at for rank in stroke.others]
    record_property("last_s", max(took_s, default=0.0))
    record_property("aborted", len(stroke.aborted))


# In a ring each of the others misses one of two, and may not know about the other. A broadcast ends
# earlier near its root: there it is the next one that misses a rank.
@in_long_runs
@pytest.mark.parametrize(("places", "victim"), [((0, 0, 1, 2), 3), ((0, 1, 2, 2), 2)])
@pytest.mark.parametrize("operation", ["allgatherv", "allreduce", "broadcast"])
def test_a_cable_is_pulled_amid_a_large_collective(hosted_pools, hosts, operation, places, victim):
    for host in hosts:
        host.shape("50mbit")
    stroke, caller = Stroke("cut", places, victim), ("python", "njit")[len(operation) % 2]
    outcomes = stroke.run(hosted_pools(places), hosts, 1_000_000, caller, operation, LARGE)
    for rank in stroke.others:
        assert named(outcomes[rank]) & stroke.lost
        assert named(outcomes[rank]) <= stroke.lost or operation == "broadcast"
    for rank in stroke.lost:
        assert named(outcomes[rank]) & stroke.others


@in_long_runs
def test_short_interruption_is_survived(hosted_pools, hosts, caller):
    for host in hosts:
        host.shape("50mbit")
    actions = hosts[2].unplug, lambda: time.sleep(0.5), hosts[2].plug
    with once_flowing(hosts[2], 1_000_000, *actions):
        hosted_pools(LAYOUTS["one each"]).run(
            gather_large, caller, LARGE, fresh=True, timeout_s=DEADLINE_S
        )
