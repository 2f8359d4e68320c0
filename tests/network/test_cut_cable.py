"""A cable is pulled amid a collective: no packet says so; the timeout ends it on both sides."""

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from cobre_comm import CollectiveFailed
from cobre_comm.testing import RanksFailed
from cobre_comm.testing.cases.faults import struck
from cobre_comm.testing.cases.faults.calling import OPERATIONS
from cobre_comm.testing.cases.faults.survivors import check_later
from tests.network import bodies

pytestmark = pytest.mark.slow  # each makes processes and waits; `make test` has the suite's own

DEADLINE_S = 60
TWO_SECONDS = {"COBRE_TCP_TIMEOUT_SECS": "2"}
LARGE = 1_000_000  # float64 per rank: some seconds at 50 Mbit/s


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


def repeat_until_failure(pool, caller, operation, length):
    return pool.run_outcomes(
        bodies.repeat_until_failure, caller, operation, length,
        env=TWO_SECONDS, fresh=True, timeout_s=DEADLINE_S,
    )  # fmt: skip


def check_caught(outcome, operation):
    """The timeout ended the collective of a rank; return the ranks that its error names."""
    caught, later, took = outcome.value
    assert isinstance(caught, CollectiveFailed), caught
    assert caught.operation == operation
    assert "COBRE_TCP_TIMEOUT_SECS" in str(caught)
    assert all(f"rank {rank}" in str(caught) for rank in caught.ranks)
    check_later(later, took, str(caught))
    return set(caught.ranks)


def check_both_sides(outcomes, cut, operation):
    """Return whom each rank before the cut names; those behind the cut name some of the others."""
    if not all(outcome.ok for outcome in outcomes):
        raise RanksFailed(outcomes)
    named = [check_caught(outcome, operation) for outcome in outcomes]
    others = set(range(len(outcomes))) - set(cut)
    for rank in cut:
        assert named[rank] & others, f"rank {rank}: {outcomes[rank].value[0]}"
    return [named[rank] for rank in sorted(others)]


def alternate(name, values):
    """Each value with one caller, alternately; with the other one in the long run."""
    cases = [
        pytest.param(value, caller, marks=[pytest.mark.slow] * ((number + turn) % 2))
        for number, value in enumerate(values)
        for turn, caller in enumerate(("python", "njit"))
    ]
    return pytest.mark.parametrize((name, "caller"), cases)


@pytest.mark.parametrize("cut", [2, 0])
@alternate("operation", OPERATIONS)
def test_small(hosted_pools, hosts, caller, operation, cut):
    """Rank 0 may have heard one of the others before; both miss the cut one, and no other rank."""
    with once_flowing(hosts[cut], 300_000, hosts[cut].unplug):
        outcomes = repeat_until_failure(hosted_pools((0, 1, 2)), caller, operation, 5)
    assert check_both_sides(outcomes, [cut], operation) == [{cut}, {cut}]


# In a ring each of the others misses one of two, and may not know about the other. A broadcast ends
# earlier near its root: there it is the next one that misses a rank.
@pytest.mark.parametrize(("places", "cut"), [((0, 0, 1, 2), {3}), ((0, 1, 2, 2), {2, 3})])
@alternate("operation", ["allgatherv", "allreduce", "broadcast"])
def test_large(hosted_pools, hosts, caller, operation, places, cut):
    """The third host's cable is pulled while a large collective is under way."""
    for host in hosts:
        host.shape("50mbit")
    with once_flowing(hosts[2], 1_000_000, hosts[2].unplug):
        outcomes = repeat_until_failure(hosted_pools(places), caller, operation, LARGE)
    for named in check_both_sides(outcomes, cut, operation):
        assert named & cut
        assert named <= cut or operation == "broadcast"


def test_short_interruption_is_survived(hosted_pools, hosts, caller):
    for host in hosts:
        host.shape("50mbit")
    actions = hosts[2].unplug, lambda: time.sleep(0.5), hosts[2].plug
    with once_flowing(hosts[2], 1_000_000, *actions):
        hosted_pools((0, 1, 2)).run(
            bodies.gather_large, caller, LARGE, fresh=True, timeout_s=DEADLINE_S
        )


@alternate("victim", range(3))
def test_killed_on_another_host(hosted_pools, victim, caller, tmp_path):
    """The kernel of the victim's host says so at once: no timeout is needed."""
    fault = struck.complete(struck.at("killed", victim), 3, backend="tcp")
    outcomes = hosted_pools((0, 1, 2)).run_outcomes(
        struck.struck, caller, fault, str(tmp_path), fresh=True, timeout_s=DEADLINE_S
    )
    struck.check(fault, outcomes)
