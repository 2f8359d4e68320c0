import pytest

from cobre_comm.testing import run_ranks
from tests.conformance.bodies.sync import three_barriers
from tests.network.hosts import CannotMakeHosts, Network
from tests.network.pool import HostedPool

HOSTS = 3
# Which host each rank is on; some ranks share one, rank 0's or another.
PLACEMENTS = [(0, 1, 2), (0, 0, 1, 2), (0, 1, 1, 2)]


@pytest.fixture(scope="package")
def whole_network():
    try:
        network = Network(HOSTS)
        network.hosts[0].shape("1gbit")
        network.restore()
    except CannotMakeHosts as reason:
        pytest.skip(f"no hosts of network namespaces here: {reason}")
    with network:
        yield network


@pytest.fixture(scope="package")
def kernels_for_tcp(whole_network):
    """Compile them once, into the cache."""
    run_ranks("tcp", 2, three_barriers, "python", timeout_s=220)


@pytest.fixture
def network(whole_network, kernels_for_tcp):
    yield whole_network
    whole_network.restore()


@pytest.fixture
def hosts(network):
    return network.hosts


@pytest.fixture(scope="package")
def hosted_pools(whole_network, kernels_for_tcp):
    """Return the pool of a placement, started when first used."""
    pools = {}

    def get(placement):
        if placement not in pools:
            pools[placement] = HostedPool([whole_network.hosts[number] for number in placement])
        return pools[placement]

    yield get
    for pool in pools.values():
        pool.close()


@pytest.fixture(params=PLACEMENTS, ids=lambda placement: "".join(str(n) for n in placement))
def hosted_pool(request, hosted_pools, network):
    return hosted_pools(request.param)
