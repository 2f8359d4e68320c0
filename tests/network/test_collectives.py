"""Ranks on several hosts get the right values, and only the switch is between them."""

import pytest

from tests.grid import slow
from tests.network import bodies

DEADLINE_S = 60
# By default the threshold is ours; else everything behind headers, everything around the ring,
# and a threshold between the lengths.
THRESHOLDS = [None, 2**31, 0, 4096]


def eager_bytes(threshold):
    return {} if threshold is None else {"COBRE_TCP_EAGER_BYTES": str(threshold)}


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_values(hosted_pool, caller, threshold):
    results = hosted_pool.run(
        bodies.all_collectives, caller, bodies.LENGTHS,
        env=eager_bytes(threshold), timeout_s=DEADLINE_S,
    )  # fmt: skip
    assert len(set(results)) == 1


def test_python_meets_njit(hosted_pool):
    hosted_pool.run(bodies.all_collectives, "mixed", bodies.LENGTHS, timeout_s=DEADLINE_S)


@pytest.mark.parametrize("threshold", [2**31, 0], ids=["mesh", "ring"])
def test_everything_passes_the_switch(hosted_pools, hosts, caller, threshold):
    """A host has no way to another but its cable, and what it must learn came through it."""
    before = [host.traffic() for host in hosts]
    hosted_pools((0, 1, 2)).run(
        bodies.gather_large, caller, 200_000, env=eager_bytes(threshold), timeout_s=DEADLINE_S
    )
    for host, (sent, received) in zip(hosts, before, strict=True):
        assert host.links() == ["eth0", "lo"]
        assert host.traffic()[0] - sent > 8 * 200_000
        assert host.traffic()[1] - received > 2 * 8 * 200_000


def test_slow_cable_is_no_timeout(hosted_pools, hosts, caller):
    """The transfer takes longer than the limit; data comes all the time, so no rank is missing."""
    for host in hosts:
        host.shape("20mbit")
    env = {"COBRE_TCP_TIMEOUT_SECS": "1"}
    hosted_pools((0, 1, 2)).run(
        bodies.gather_large, caller, 250_000, env=env, fresh=True, timeout_s=DEADLINE_S
    )


@pytest.mark.parametrize("threshold", [None, slow(2**31), slow(0)])
def test_ipv6(hosted_pools, hosts, caller, threshold):
    env = {
        "COBRE_TCP_COORDINATOR": hosts[0].address6,
        "COBRE_TCP_BIND_ADDR": "::",
        **eager_bytes(threshold),
    }
    hosted_pools((0, 1, 1, 2)).run(
        bodies.all_collectives, caller, bodies.LENGTHS, env=env, timeout_s=DEADLINE_S
    )
