"""Ranks on several hosts get the right values, and only the switch is between them."""

import itertools

import pytest

from tests.grid import pairs, slow, some
from tests.network import bodies
from tests.network.conftest import LAYOUTS

DEADLINE_S = 60
# By default the threshold is ours; else everything behind headers, everything around the ring,
# and a threshold between the lengths.
THRESHOLDS = [None, 2**31, 0, 4096]


def eager_bytes(threshold):
    return {} if threshold is None else {"COBRE_TCP_EAGER_BYTES": str(threshold)}


FACTORS = {
    "threshold": THRESHOLDS,
    "layout": [*LAYOUTS],
    "caller": ["python", "njit", "mixed"],
}
PRODUCT = [dict(zip(FACTORS, row, strict=True)) for row in itertools.product(*FACTORS.values())]
DAILY = [(None, "one each", "python"), (0, "1+2+1", "mixed"), (4096, "1+2+1", "python")]


@pytest.mark.parametrize(tuple(FACTORS), some(DAILY, [tuple(r.values()) for r in pairs(PRODUCT)]))
def test_values(hosted_pools, hosts, threshold, layout, caller):
    results = hosted_pools(LAYOUTS[layout]).run(
        bodies.all_collectives, caller, bodies.LENGTHS,
        env=eager_bytes(threshold), timeout_s=DEADLINE_S,
    )  # fmt: skip
    assert len(set(results)) == 1


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
