import contextlib

import pytest

from tests.network.hosts import CannotMakeHosts, Network
from tests.network.pool import HostedPool, MpiHostedPool

HOSTS = 3
# The host of each rank.
LAYOUTS = {
    "one host": (0, 0, 0, 0),
    "one each": (0, 1, 2),
    "2+2": (0, 0, 1, 1),
    "3+1": (0, 0, 0, 1),
    "1+2+1": (0, 1, 1, 2),
    "interleaved": (0, 1, 0, 1),
    "1+2+4": (0, 1, 1, 2, 2, 2, 2),
}


@pytest.fixture(scope="package")
def whole_network():
    with contextlib.ExitStack() as stack:
        try:
            network = stack.enter_context(Network(HOSTS))
            network.hosts[0].shape("1gbit")
            network.restore()
        except CannotMakeHosts as reason:
            pytest.skip(f"no hosts of network namespaces here: {reason}")
        yield network


@pytest.fixture(scope="package")
def pools(whole_network):
    kept = {}
    yield kept
    for pool in kept.values():
        pool.close()


@pytest.fixture
def hosts(whole_network, pools):
    yield whole_network.hosts
    # A long cut also ends the links of idle communicators, so the next test gets new pools.
    if whole_network.restore():
        for pool in pools.values():
            pool.close()


@pytest.fixture
def hosted_pools(whole_network, pools):
    """Return a function that gives the pool of ranks for a placement and a backend."""

    def get(placement, backend="tcp"):
        key = placement, backend
        if key not in pools:
            hosts = [whole_network.hosts[number] for number in placement]
            pools[key] = HostedPool(hosts) if backend == "tcp" else MpiHostedPool(backend, hosts)
        return pools[key]

    return get


@pytest.fixture(params=["python", pytest.param("njit", marks=pytest.mark.slow)])
def caller(request):
    return request.param
