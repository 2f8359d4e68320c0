import os

import pytest

from cobre_comm.launcher.warm import warm_up
from cobre_comm.testing import RankPool, leftovers
from tests.grid import BACKENDS, GRID, SHORT_GRID, skip_unless_here


class Pools:
    """One pool for each backend and number of ranks, started when first used."""

    def __init__(self):
        self._pools = {}

    def get(self, backend, size):
        skip_unless_here(backend)
        if (backend, size) not in self._pools:
            # Where a test kills a rank, it is about what the others then see.
            self._pools[backend, size] = RankPool(backend, size, survivors=True)
        return self._pools[backend, size]

    def close(self):
        for pool in self._pools.values():
            pool.close()


def pytest_sessionstart(session):
    """Compile the kernels once, into the cache, before any test's time runs."""
    if not session.config.option.collectonly:
        for backend in ("local", "shm", "tcp", "mpi"):
            warm_up(backend, os.environ)


@pytest.fixture(scope="package")
def pools():
    pools = Pools()
    yield pools
    pools.close()


@pytest.fixture(params=GRID)
def pool(request, pools):
    return pools.get(*request.param)


@pytest.fixture(params=SHORT_GRID)
def thorough_pool(request, pools):
    """Return a pool for what takes long on each."""
    return pools.get(*request.param)


@pytest.fixture(params=BACKENDS)
def backend(request):
    skip_unless_here(request.param)
    return request.param


@pytest.fixture(params=["python", "njit"])
def caller(request):
    return request.param


@pytest.fixture(autouse=True)
def nothing_left_in_shared_memory():
    yield
    assert leftovers() == []
