"""Ranks on several hosts get the right values, and only the switch connects these hosts."""

import itertools

import pytest

from cobre_comm import ReduceOp
from cobre_comm.testing.cases.calls import chosen
from cobre_comm.testing.cases.collectives import allgatherv, allreduce, broadcast
from cobre_comm.testing.cases.collectives.barrier import three_barriers
from cobre_comm.testing.cases.faults.calling import prepare
from cobre_comm.testing.cases.reference import ops_of
from tests.grid import pairs, slow, some
from tests.network.conftest import LAYOUTS

DEADLINE_S = 60
LENGTHS = [1, 13, 5_000, 100_003]
# Values of COBRE_TCP_EAGER_BYTES, the largest payload that travels behind its header: our default;
# a value by which all payloads travel behind headers; one by which all go around the ring; and one
# by which payloads of the two shorter LENGTHS travel behind headers, and payloads of the two longer
# LENGTHS go around the ring.
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


def all_collectives(comm, caller):
    """Make each collective, and verify it; return how many bytes the longest reduction gives."""
    caller = chosen(caller, comm.rank)
    for length in LENGTHS:
        allgatherv.gather_equal(comm, caller, "f8", length)
        uneven = allgatherv.packed([(0, length, 3)[r % 3] for r in range(comm.size)])
        allgatherv.gather(comm, caller, "f8", uneven, seed=1)
        broadcast.cast_from_every_rank(comm, caller, "f8", length)
        for op in ops_of("f8"):
            allreduce.reduce(comm, caller, "f8", op, length)
    three_barriers(comm, caller)
    return allreduce.reduce(comm, caller, "f8", ReduceOp.SUM, LENGTHS[-1])


@pytest.mark.parametrize(tuple(FACTORS), some(DAILY, [tuple(r.values()) for r in pairs(PRODUCT)]))
def test_values(hosted_pools, hosts, threshold, layout, caller):
    results = hosted_pools(LAYOUTS[layout]).run(
        all_collectives, caller, env=eager_bytes(threshold), timeout_s=DEADLINE_S
    )
    assert len(set(results)) == 1


def gather_large(comm, caller, count):
    """Meet first, so that the collective that follows is under way on all ranks together."""
    prepare(comm, caller)
    allgatherv.gather_equal(comm, caller, "f8", count)


@pytest.mark.parametrize("threshold", [2**31, 0], ids=["mesh", "ring"])
def test_everything_passes_the_switch(hosted_pools, hosts, caller, threshold):
    """Only its cable connects a host with the other hosts, and the bytes have passed the cable."""
    before = [host.traffic() for host in hosts]
    hosted_pools((0, 1, 2)).run(
        gather_large, caller, 200_000, env=eager_bytes(threshold), timeout_s=DEADLINE_S
    )
    for host, (sent, received) in zip(hosts, before, strict=True):
        assert host.links() == ["eth0", "lo"]
        assert host.traffic()[0] - sent > 8 * 200_000
        assert host.traffic()[1] - received > 2 * 8 * 200_000


def test_slow_cable_is_no_timeout(hosted_pools, hosts, caller):
    """The transfer takes longer than the limit; bytes arrive all the time, so no rank is late."""
    for host in hosts:
        host.shape("20mbit")
    env = {"COBRE_TCP_TIMEOUT_SECS": "1"}
    hosted_pools((0, 1, 2)).run(
        gather_large, caller, 250_000, env=env, fresh=True, timeout_s=DEADLINE_S
    )


@pytest.mark.parametrize("threshold", [None, slow(2**31), slow(0)])
def test_ipv6(hosted_pools, hosts, caller, threshold):
    env = {
        "COBRE_TCP_COORDINATOR": hosts[0].address6,
        "COBRE_TCP_BIND_ADDR": "::",
        **eager_bytes(threshold),
    }
    hosted_pools((0, 1, 1, 2)).run(all_collectives, caller, env=env, timeout_s=DEADLINE_S)
