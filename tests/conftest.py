import pytest

from cobre_comm.testing import RankPool, leftovers, run_ranks
from tests.conformance.bodies.sync import three_barriers

BACKENDS = ["shm", "tcp"]  # those of several ranks
GRID = [("local", 1), *((backend, size) for backend in BACKENDS for size in (1, 2, 3, 4, 7))]


def grid_id(point):
    return f"{point[0]}-{point[1]}"


class Pools:
    """One pool for each backend and number of ranks, started when first used."""

    def __init__(self):
        self._pools = {}

    def get(self, backend, size):
        if (backend, size) not in self._pools:
            self._pools[backend, size] = RankPool(backend, size)
        return self._pools[backend, size]

    def close(self):
        for pool in self._pools.values():
            pool.close()


@pytest.fixture(scope="package", autouse=True)
def kernels_are_compiled():
    """Compile the kernels once, into the cache, instead of in every rank of the first test."""
    for backend in ("local", *BACKENDS):
        run_ranks(backend, 1, three_barriers, "python", timeout_s=220)


@pytest.fixture(scope="package")
def pools():
    pools = Pools()
    yield pools
    pools.close()


@pytest.fixture(params=GRID, ids=grid_id)
def pool(request, pools):
    return pools.get(*request.param)


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


@pytest.fixture(params=["python", "njit"])
def caller(request):
    return request.param


@pytest.fixture(autouse=True)
def nothing_left_in_shared_memory():
    yield
    assert leftovers() == []
