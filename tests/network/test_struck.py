"""A rank on one of several hosts is killed or stopped, or the cable of its host is pulled.

No packet says that a cable was pulled: the timeout ends the collective on both sides of the cut.
"""

import contextlib
import itertools
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from cobre_comm.testing.cases.calls import OPERATIONS
from cobre_comm.testing.cases.faults.calling import meet_failure, prepare
from cobre_comm.testing.cases.faults.survivors import check_later, check_timeout
from cobre_comm.testing.cases.waiting import wait_until
from tests.grid import OUR_GRID, pairs, skip_unless_here, some
from tests.network.conftest import LAYOUTS
from tests.network.test_collectives import gather_large

in_long_runs = pytest.mark.slow  # each test makes processes; `make test` has the suite's cases

DEADLINE_S = 60
LIMIT_S = 2
LIMIT = OUR_GRID.timeout_of(LIMIT_S)
STOPPED_S = 4 * LIMIT_S
LARGE = 1_000_000  # float64 numbers of each rank: they take some seconds at 50 Mbit/s
# For each layout: a victim that leads its node, in one layout rank 0; and one that follows.
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
OVER_TCP = [("tcp", *row.values()) for row in pairs(PRODUCT)]
# Two nodes of two ranks, each node on a host of its own: the first victim leads a node, and the
# second victim follows on the other host.
BOTH = [("interleaved", 1), ("interleaved", 2)]
OVER_MPI = [
    (f"mpi-{library}-net:0,1", kind, victim, operation, ("python", "njit")[number % 2], 5)
    for library in ("openmpi", "mpich")
    for kind, victim in itertools.product(FACTORS["kind"], BOTH)
    for number, operation in enumerate(OPERATIONS)
]
EVERYDAY = [
    next(row for row in OVER_TCP if row[1] == "cut"),
    ("mpi-openmpi-net:0,1", "killed", BOTH[1], OPERATIONS[0], "python", 5),
]


def _act_when_flowing(host, octets, actions):
    """Act on a host as soon as ``octets`` more bytes have passed its cable."""
    before = sum(host.traffic())
    flows = wait_until(lambda: sum(host.traffic()) - before >= octets, DEADLINE_S / 2)
    assert flows, "no bytes pass the cable"
    for action in actions:
        action()


@contextlib.contextmanager
def once_flowing(host, octets, *actions):
    with ThreadPoolExecutor(1) as executor:
        acted = executor.submit(_act_when_flowing, host, octets, actions)
        yield
        acted.result()


def repeat_until_failure(comm, caller, operation, length):
    """Call a collective until it fails; return its error and time, and those of later calls."""
    prepare(comm, caller)
    while True:
        met = meet_failure(comm, caller, operation, length=length)
        if met[0] is not None:
            return met


class Stroke:
    """A fault that strikes one rank, or all ranks of the rank's host."""

    def __init__(self, kind, places, victim, backend="tcp"):
        self.kind, self.places, self.victim, self.backend = kind, places, victim, backend
        cut_off = {rank for rank, place in enumerate(places) if place == places[victim]}
        self.lost = cut_off if kind == "cut" else {victim}
        self.others = set(range(len(places))) - self.lost

    def actions(self, pool, host):
        pid = pool.pids[self.victim]
        if self.kind == "cut":
            return [host.unplug]
        if self.kind == "killed":
            return [lambda: os.kill(pid, signal.SIGKILL)]
        return [
            lambda: os.kill(pid, signal.SIGSTOP),
            lambda: time.sleep(STOPPED_S),
            lambda: os.kill(pid, signal.SIGCONT),
        ]

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
        """Count as lost each rank that Open MPI ends because a socket to a dead process closes."""
        if self.kind == "killed" and "openmpi" in self.backend:
            self.lost |= {o.rank for o in outcomes if o.ended and "Socket closed" in o.output}
            self.others -= self.lost

    def _check(self, outcome, operation):
        if outcome.rank == self.victim and self.kind == "killed":
            assert outcome.exit_code == -signal.SIGKILL
            return
        if outcome.rank in self.lost and self.kind == "killed":
            assert outcome.exit_code > 0, outcome.describe()
            return
        assert outcome.ok, outcome.describe()
        caught, _, later, took = outcome.value
        variable = OUR_GRID.timeout_variable(self.backend)
        check_timeout(caught, variable if self.kind == "cut" else "")
        assert caught.operation == operation
        check_later(later, took, str(caught))


def named(outcome):
    return set(outcome.value[0].ranks)


def lost_are_named(stroke, outcomes):
    for rank in stroke.others:
        assert named(outcomes[rank]), outcomes[rank]
        assert named(outcomes[rank]) <= stroke.lost, outcomes[rank]
    for rank in stroke.lost if stroke.kind == "cut" else ():
        assert named(outcomes[rank]) & stroke.others, outcomes[rank]


@pytest.mark.parametrize(
    ("backend", "kind", "victim", "operation", "caller", "length"),
    some(EVERYDAY, [*OVER_TCP, *OVER_MPI]),
)
def test_struck(hosted_pools, hosts, backend, kind, victim, operation, caller, length):
    """The error names lost ranks alone; beyond a cut cable it names some of the other ranks."""
    layout, rank = victim
    pool = hosted_pools(LAYOUTS[layout], skip_unless_here(backend))
    stroke = Stroke(kind, LAYOUTS[layout], rank, backend)
    row = backend, kind, victim, operation, caller, length
    turn = [*OVER_TCP, *OVER_MPI].index(row) % 20
    try:
        outcomes = stroke.run(pool, hosts, 100_000 + 10_000 * turn, caller, operation, length)
    finally:
        if kind == "cut" and backend != "tcp":
            pool.end()
    lost_are_named(stroke, outcomes)


# In a ring, a rank may wait for one of two lost ranks, and not know that the other is lost too. A
# broadcast ends earlier near its root, so that a rank near the root notices a lost rank only in the
# next broadcast.
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
