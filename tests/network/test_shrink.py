"""A network falls into parts: at most one part continues, with all of its ranks."""

import numpy as np
import pytest

from cobre_comm import CollectiveFailed
from cobre_comm.testing.cases.mixed.sequences import four_in_a_row
from tests.grid import OUR_GRID
from tests.network.conftest import LAYOUTS
from tests.network.test_struck import DEADLINE_S, in_long_runs, once_flowing

LIMIT = OUR_GRID.timeout_of(5)


def go_on(comm, caller):
    """Work until a loss, then with the survivors; return their ranks, or the text of the error."""
    me, values = comm.rank, np.ones(5)
    try:
        while True:
            comm.allreduce(values, np.empty(5))
    except CollectiveFailed:
        pass
    try:
        made = comm.shrink()
    except CollectiveFailed as error:
        return str(error)
    for _ in range(25):
        four_in_a_row(made, caller)
    members = np.zeros(made.size, np.int64)
    made.allgather(np.array([me]), members)
    return members.tolist()


def cut_off(pool, hosts, caller):
    """Pull the cables of hosts out while the ranks work; return the outcome of each rank."""
    pool.run(four_in_a_row, caller, timeout_s=DEADLINE_S)
    # The communicator is made before bytes are counted, because a cut during the rendezvous is no
    # loss.
    pool.run(four_in_a_row, caller, env=LIMIT, timeout_s=DEADLINE_S)
    with once_flowing(hosts[0], 20_000, *(host.unplug for host in hosts)):
        return pool.run_outcomes(go_on, caller, env=LIMIT, timeout_s=DEADLINE_S)


# The layout, the host from which the cable is pulled, and the ranks that continue.
CUTS = [
    ("one each", 2, [0, 1]),
    ("one each", 0, [1, 2]),
    ("2+2", 1, [0, 1]),
    ("2+2", 0, [0, 1]),
    ("interleaved", 1, [0, 2]),
    ("3+1", 0, [0, 1, 2]),
    ("1+2+1", 0, [1, 2, 3]),
    ("1+2+4", 2, [3, 4, 5, 6]),
]


@pytest.mark.parametrize(
    ("layout", "cut", "left"), [CUTS[1], *(pytest.param(*row, marks=in_long_runs) for row in CUTS)]
)
def test_one_part_goes_on(hosted_pools, hosts, caller, layout, cut, left):
    outcomes = cut_off(hosted_pools(LAYOUTS[layout]), hosts[cut : cut + 1], caller)
    for outcome in outcomes:
        assert outcome.ok, outcome.describe()
        if outcome.rank in left:
            assert outcome.value == left, outcome.value
        else:
            assert "the others may go on" in outcome.value, outcome.value


@in_long_runs
@pytest.mark.parametrize("layout", ["one each", "1+2+1"])
def test_no_part_is_large_enough(hosted_pools, hosts, caller, layout):
    """All cables are pulled, and no host has more than half of the ranks, or half and rank 0."""
    outcomes = cut_off(hosted_pools(LAYOUTS[layout]), hosts, caller)
    for outcome in outcomes:
        assert outcome.ok, outcome.describe()
        assert isinstance(outcome.value, str), outcome.value
