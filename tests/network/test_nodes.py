"""Several ranks on a host share memory, and one of these ranks speaks for all of them."""

import numpy as np
import pytest

from tests.network.conftest import LAYOUTS
from tests.network.test_collectives import gather_large

pytestmark = pytest.mark.slow  # each test makes processes and waits

DEADLINE_S = 60


def fill_region(comm):
    """Leaders fill a region, which all ranks read; return this rank's leader and node size."""
    with comm.create_shared_region(1000) as region:
        if comm.is_leader:
            region.part(0, 1000)[:] = comm.rank
        region.fence()
        found = np.unique(region.part(0, 1000))
        region.fence()
    with comm.split_local() as local:
        assert found.tolist() == [comm.rank - local.rank] or local.size > 1
        return int(found[0]), local.size


@pytest.mark.parametrize("places", LAYOUTS.values(), ids=LAYOUTS)
def test_regions_are_shared_by_the_ranks_of_a_host(hosted_pools, hosts, places):
    told = hosted_pools(places).run(fill_region, timeout_s=DEADLINE_S)
    assert told == [(places.index(place), places.count(place)) for place in places]


def test_a_byte_crosses_once_for_all_ranks_of_a_host(hosted_pools, hosts):
    """There are two hosts with two ranks each; a host sends its half of the data just once."""
    pool, count = hosted_pools(LAYOUTS["2+2"]), 500_000
    pool.run(gather_large, "python", 10, timeout_s=DEADLINE_S)
    before = [host.traffic() for host in hosts[:2]]
    pool.run(gather_large, "python", count, timeout_s=DEADLINE_S)
    half = 2 * 8 * count
    for host, then in zip(hosts, before, strict=False):
        for moved in (b - a for a, b in zip(then, host.traffic(), strict=True)):
            assert half < moved < 1.05 * half
