"""The conformance suite, as another distribution uses it: a class for each fault, and one without.

The ranks are the same processes for all faults. Each test gets a new communicator, which has the
fault that the class of the test names.
"""

import pytest

from cobre_comm.testing import RankPool
from cobre_comm.testing.conformance import ConformanceSuite, Grid
from planted.backend import VARIABLE
from planted.faults import FAULTS

SMALL = {"COBRE_SHM_BUFFER_BYTES": "4096"}


def grid_of(*sizes):
    return Grid.of(
        "planted",
        sizes=sizes,
        timeout_variable="COBRE_SHM_TIMEOUT_SECS",
        smallest_buffers=SMALL,
        small_buffers=SMALL,
    )


class TestNone(ConformanceSuite):
    grid = grid_of(2, 3)
    fault = ""


for _fault in FAULTS.values():
    _fields = {"grid": grid_of(_fault.ranks), "fault": _fault.name, "__module__": __name__}
    globals()[_fault.class_name] = type(_fault.class_name, (ConformanceSuite,), _fields)


class FaultyRanks:
    """Running ranks, as tests know them; but each body gets a communicator of its own."""

    def __init__(self, pool, fault):
        self._pool = pool
        self._fault = {VARIABLE: fault}

    def __getattr__(self, name):
        return getattr(self._pool, name)

    def run(self, body, *args, env=None, fresh=True, **keywords):
        env = {**(env or {}), **self._fault}
        return self._pool.run(body, *args, env=env, fresh=True, **keywords)

    def run_outcomes(self, body, *args, env=None, fresh=True, **keywords):
        env = {**(env or {}), **self._fault}
        return self._pool.run_outcomes(body, *args, env=env, fresh=True, **keywords)


class FaultyPools:
    """Replaces the pools of the suite's plugin; the ranks of these pools have a fault."""

    def __init__(self, pools, fault):
        self._pools = pools
        self._fault = fault

    def get(self, backend, size):
        if size not in self._pools:
            self._pools[size] = RankPool(backend, size)
        return FaultyRanks(self._pools[size], self._fault)


@pytest.fixture(scope="session")
def running():
    pools = {}
    yield pools
    for pool in pools.values():
        pool.close()


@pytest.fixture
def pools(request, running):
    """Replace the plugin's fixture: ranks have the fault of the outermost class of the test."""
    classes = [node.obj for node in request.node.listchain() if isinstance(node, pytest.Class)]
    return FaultyPools(running, classes[0].fault)
