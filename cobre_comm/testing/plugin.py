"""A pytest plugin: ranks that all tests share, and a look at what they left behind.

``pytest_plugins = ["cobre_comm.testing.plugin"]`` in the ``conftest.py`` of the root folder, or
``pytest -p cobre_comm.testing.plugin``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from cobre_comm.backends import NAMES
from cobre_comm.compile.warm import warm_up
from cobre_comm.testing.ranks.pool import RankPool
from cobre_comm.testing.ranks.surroundings import leftovers
from cobre_comm.testing.suite.here import skip_unless_here

MARKERS = (
    "quick: every collective, backend and caller once, for `pytest -m quick`",
    "slow: long grids, for `pytest -m slow` or no -m at all",
    "cobre_needs(*features): what a backend must be able to do",
)

# Their asserts should show what they compare, as those in files of tests do.
if "cobre_comm.testing.cases" not in sys.modules:
    pytest.register_assert_rewrite("cobre_comm.testing.cases")


class Pools:
    """One pool of ranks for each backend and number of ranks, started when first used."""

    def __init__(self) -> None:
        self._pools: dict[tuple[str, int], RankPool] = {}

    def get(self, backend: str, size: int) -> RankPool:
        """Return the pool of that many ranks; skip the test if there can be none here."""
        skip_unless_here(backend)
        if (backend, size) not in self._pools:
            # Where a test kills a rank, it is about what the others then see.
            self._pools[backend, size] = RankPool(backend, size)
        return self._pools[backend, size]

    def close(self) -> None:
        """End all ranks."""
        for pool in self._pools.values():
            pool.close()


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks of the suite."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    if not config.pluginmanager.has_plugin("timeout"):
        config.addinivalue_line("markers", "timeout(seconds): obeyed if pytest-timeout is there")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile the kernels once, into the cache, before any test's time runs."""
    if not session.config.option.collectonly:
        warm_up(NAMES, os.environ)


@pytest.fixture(scope="session")
def pools() -> Iterator[Pools]:
    """Ranks for all tests: starting them costs a second each time."""
    pools = Pools()
    yield pools
    pools.close()


@pytest.fixture(autouse=True)
def nothing_left_in_shared_memory() -> Iterator[None]:
    """Fail a test whose jobs left a name in shared memory."""
    yield
    assert leftovers() == []
