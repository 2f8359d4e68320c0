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
from cobre_comm.testing.cases.faults.calling import OPERATIONS
from cobre_comm.testing.cases.faults.survivors import check_later
from tests.grid import pairs
from tests.network import bodies
from tests.network.conftest import LAYOUTS

pytestmark = pytest.mark.slow  # each makes processes and waits; `make test` has the suite's own

DEADLINE_S = 60
LIMIT_S = 2
LIMIT = {"COBRE_TCP_TIMEOUT_SECS": str(LIMIT_S)}
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


def _act_when_flowing(host, octets, actions):
    """Once so many bytes have passed a host's cable, do something to it."""
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


class Stroke:
    """What befalls a rank, and perhaps all ranks of its host."""

    def __init__(self, kind, places, victim):
        self.kind, self.places, self.victim = kind, places, victim
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
        """Repeat a collective until it fails; return what became of each rank."""
        pool.run(bodies.gather_large, caller, 10, timeout_s=DEADLINE_S)
        host = hosts[self.places[self.victim]]
        with once_flowing(host, octets, *self.actions(pool, host)):
            outcomes = pool.run_outcomes(
                bodies.repeat_until_failure, caller, operation, length,
                env=LIMIT, fresh=True, timeout_s=DEADLINE_S,
            )  # fmt: skip
        for outcome in outcomes:
            self._check(outcome, operation)
        return outcomes

    def _check(self, outcome, operation):
        if outcome.rank in self.lost and self.kind == "killed":
            assert outcome.exit_code == -signal.SIGKILL
            return
        assert outcome.ok, outcome.describe()
        caught, later, took = outcome.value
        assert isinstance(caught, CollectiveFailed), caught
        assert caught.operation == operation
        assert all(f"rank {rank}" in str(caught) for rank in caught.ranks)
        assert self.kind != "cut" or "COBRE_TCP_TIMEOUT_SECS" in str(caught)
        check_later(later, took, str(caught))


def named(outcome):
    return set(outcome.value[0].ranks)


@pytest.mark.parametrize("turn", range(len(STRUCK)))
def test_struck(hosted_pools, hosts, turn):
    """All others name the lost ranks alone; a node behind a cut cable names some beyond it."""
    kind, (layout, victim), operation, caller, length = STRUCK[turn]
    stroke = Stroke(kind, LAYOUTS[layout], victim)
    outcomes = stroke.run(
        hosted_pools(LAYOUTS[layout]), hosts, 100_000 + 10_000 * turn, caller, operation, length
    )
    for rank in stroke.others:
        assert named(outcomes[rank]), outcomes[rank]
        assert named(outcomes[rank]) <= stroke.lost, outcomes[rank]
    for rank in stroke.lost if kind == "cut" else ():
        assert named(outcomes[rank]) & stroke.others, outcomes[rank]


# In a ring each of the others misses one of two, and may not know about the other. A broadcast ends
# earlier near its root: there it is the next one that misses a rank.
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


def test_short_interruption_is_survived(hosted_pools, hosts, caller):
    for host in hosts:
        host.shape("50mbit")
    actions = hosts[2].unplug, lambda: time.sleep(0.5), hosts[2].plug
    with once_flowing(hosts[2], 1_000_000, *actions):
        hosted_pools(LAYOUTS["one each"]).run(
            bodies.gather_large, caller, LARGE, fresh=True, timeout_s=DEADLINE_S
        )
