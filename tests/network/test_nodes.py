"""Several ranks on each host: they share its memory, and one of them speaks for all.

Values and regions on every layout; and what befalls a leader or a follower is told to all ranks.
"""

import itertools
import os
import signal
import time

import numpy as np
import pytest

from cobre_comm import CollectiveFailed
from cobre_comm.testing.cases.faults.calling import OPERATIONS
from cobre_comm.testing.cases.faults.survivors import check_later
from tests.grid import pairs
from tests.network import bodies
from tests.network.test_cut_cable import once_flowing, repeat_until_failure

pytestmark = pytest.mark.slow  # each makes processes and waits

DEADLINE_S = 60
LAYOUTS = {
    "one host": (0, 0, 0, 0),
    "one each": (0, 1, 2),
    "2+2": (0, 0, 1, 1),
    "3+1": (0, 0, 0, 1),
    "interleaved": (0, 1, 0, 1),
    "1+2+4": (0, 1, 1, 2, 2, 2, 2),
}
LIMIT_S = 2  # of repeat_until_failure
STOPPED_S = 4 * LIMIT_S
# A victim that leads its node, which is rank 0's or not; and one that follows.
LEADERS = {"2+2": 2, "3+1": 0, "interleaved": 1, "1+2+4": 3}
FOLLOWERS = {"2+2": 3, "3+1": 1, "interleaved": 2, "1+2+4": 6}


def of_hosts(layout):
    return pytest.mark.parametrize("places", [LAYOUTS[each] for each in layout], ids=layout)


def fill_region(comm):
    """Leaders fill a region, all ranks read it; return whose copy this rank has."""
    with comm.create_shared_region(1000) as region:
        if comm.is_leader:
            region.block(0, 1000)[:] = comm.rank
        region.fence()
        found = np.unique(region.block(0, 1000))
        region.fence()
    with comm.split_local() as local:
        assert found.tolist() == [comm.rank - local.rank] or local.size > 1
        return int(found[0]), local.size


@of_hosts(LAYOUTS)
def test_values(hosted_pools, hosts, caller, places):
    results = hosted_pools(places).run(
        bodies.all_collectives, caller, bodies.LENGTHS, timeout_s=DEADLINE_S
    )
    assert len(set(results)) == 1


@of_hosts(LAYOUTS)
def test_regions_are_shared_by_the_ranks_of_a_host(hosted_pools, hosts, places):
    told = hosted_pools(places).run(fill_region, timeout_s=DEADLINE_S)
    assert told == [(places.index(place), places.count(place)) for place in places]


def test_a_byte_crosses_once_for_all_ranks_of_a_host(hosted_pools, hosts):
    """Two ranks on each of two hosts: a cable carries the other host's half, and no more."""
    pool, count = hosted_pools(LAYOUTS["2+2"]), 500_000
    pool.run(bodies.gather_large, "python", 10, timeout_s=DEADLINE_S)
    before = [host.traffic() for host in hosts[:2]]
    pool.run(bodies.gather_large, "python", count, timeout_s=DEADLINE_S)
    half = 2 * 8 * count
    for host, then in zip(hosts, before, strict=False):
        for moved in (b - a for a, b in zip(then, host.traffic(), strict=True)):
            assert half < moved < 1.05 * half


class Stroke:
    """What befalls a rank: its process is killed or stopped, or its host's cable is pulled."""

    def __init__(self, kind, places, victim):
        self.kind, self.places, self.victim = kind, places, victim
        cut_off = {rank for rank, place in enumerate(places) if place == places[victim]}
        self.lost = cut_off if kind == "cut" else {victim}
        self.others = set(range(len(places))) - self.lost

    def actions(self, pool, hosts):
        pid = pool.pids[self.victim]
        if self.kind == "cut":
            return [hosts[self.places[self.victim]].unplug]
        if self.kind == "killed":
            return [lambda: os.kill(pid, signal.SIGKILL)]
        return [
            lambda: os.kill(pid, signal.SIGSTOP),
            lambda: time.sleep(STOPPED_S),
            lambda: os.kill(pid, signal.SIGCONT),
        ]

    def check(self, outcomes):
        """All others name the lost ranks alone; a node behind a cut cable names some beyond it."""
        for outcome in outcomes:
            if outcome.rank in self.lost and self.kind == "killed":
                assert outcome.exit_code == -signal.SIGKILL
                continue
            assert outcome.ok, outcome.describe()
            caught, later, took = outcome.value
            assert isinstance(caught, CollectiveFailed), caught
            check_later(later, took, str(caught))
            named = set(caught.ranks)
            if outcome.rank in self.others:
                assert named, caught
                assert named <= self.lost, f"rank {outcome.rank}: {caught}"
            elif self.kind == "cut":
                assert named & self.others, f"rank {outcome.rank}: {caught}"


FACTORS = {
    "kind": ["killed", "stopped", "cut"],
    "place": ["leader", "follower"],
    "layout": [*LEADERS],
    "operation": OPERATIONS,
    "caller": ["python", "njit"],
    "length": [5, 20_000],
}
STRUCK = pairs(
    [dict(zip(FACTORS, row, strict=True)) for row in itertools.product(*FACTORS.values())]
)


@pytest.mark.parametrize("turn", range(len(STRUCK)))
def test_struck(hosted_pools, hosts, turn):
    kind, place, layout, operation, caller, length = STRUCK[turn].values()
    victim = (LEADERS if place == "leader" else FOLLOWERS)[layout]
    pool, stroke = hosted_pools(LAYOUTS[layout]), Stroke(kind, LAYOUTS[layout], victim)
    pool.run(bodies.gather_large, caller, 10, timeout_s=DEADLINE_S)
    host = hosts[LAYOUTS[layout][victim]]
    with once_flowing(host, 100_000 + 10_000 * turn, *stroke.actions(pool, hosts)):
        outcomes = repeat_until_failure(pool, caller, operation, length)
    stroke.check(outcomes)
