"""The pytest plugin: ``@pytest.mark.ranks`` and the ranks that all tests share.

pytest loads it wherever this package is installed, so it imports other modules only when a test
asks for ranks.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cobre_comm.testing.marker.jobs import MarkedJob
    from cobre_comm.testing.ranks.pool import RankPool

MARKERS = (
    "ranks(*sizes, backends=['shm'], timeout=60, env={}, connect=True, killed=0): run the test "
    "on every rank of a job, with its communicator as `comm`, once for each backend and number "
    "of ranks",
    "quick: every collective, backend and caller once, for `pytest -m quick`",
    "slow: more combinations, left out by `pytest -m 'not slow'`",
    "slowest: even more of them, left out by `pytest -m 'not slowest'`; what is slowest is slow",
)

MOST_POOLS = 6
SUITE = "cobre_comm.testing.suite"  # if it is not loaded, a fixture named `pools` is not ours

# Makes a failing assert of a case show the values that it compares, as in a file of tests.
if "cobre_comm.testing.cases" not in sys.modules:
    pytest.register_assert_rewrite("cobre_comm.testing.cases")


class Pools:
    """One pool of ranks for each backend and number of ranks, started when first used.

    Ranks take some 100 MB each, so only the pools that were used last are kept.
    """

    def __init__(self) -> None:
        self._pools: dict[tuple[str, int], RankPool] = {}

    def get(self, backend: str, size: int) -> RankPool:
        """Return the pool of that many ranks; skip the test if such ranks cannot start here."""
        from cobre_comm.testing.suite.here import skip_unless_here

        skip_unless_here(backend)
        pool = self._pools.pop((backend, size), None) or self._new(backend, size)
        self._pools[backend, size] = pool
        if len(self._pools) > MOST_POOLS:
            self._pools.pop(next(iter(self._pools))).close()
        return pool

    def _new(self, backend: str, size: int) -> RankPool:
        from cobre_comm.testing.ranks.pool import RankPool

        return RankPool(backend, size)

    def close(self) -> None:
        """End all ranks."""
        for pool in self._pools.values():
            pool.close()


POOLS = pytest.StashKey[Pools]()


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    if not config.pluginmanager.has_plugin("timeout"):
        config.addinivalue_line("markers", "timeout(seconds): obeyed if pytest-timeout is there")
    config.stash[POOLS] = Pools()
    config.add_cleanup(config.stash[POOLS].close)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make pytest collect a marked test once for each backend and number of ranks."""
    if _is_marked(metafunc.definition):
        from cobre_comm.testing.marker.jobs import parametrize

        parametrize(metafunc)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the kernels' machine code, if it is missing, outside of the time of any test."""
    backends = set(_backends(session.items))
    if backends and not session.config.option.collectonly:
        from cobre_kernels.machine.made import prepare

        prepare()


def _backends(items: Iterable[pytest.Item]) -> Iterable[str]:
    """Yield the built-in backends that tests need; all of them if a test does not tell."""
    for item in items:
        if SUITE in sys.modules and "pools" in getattr(item, "fixturenames", ()):
            from cobre_comm.backends import NAMES

            yield from NAMES
        elif isinstance(item, pytest.Function) and _is_marked(item) and (job := _job(item)):
            from cobre_comm.backends import NAMES
            from cobre_comm.testing.backend_name import BackendName

            yield from {BackendName.parse(job.backend).kind} & {*NAMES}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse a marked test that has no job: pytest would run it in this process."""
    if isinstance(item, pytest.Function) and _is_marked(item) and _job(item) is None:
        pytest.fail(
            f"{item.name} is marked with ranks, but a method of a unittest.TestCase gets no "
            "communicator: write it as a function, or in a class of its own",
            pytrace=False,
        )


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a marked test on its ranks."""
    job = _job(pyfuncitem) if _is_marked(pyfuncitem) else None
    if job is None:
        return None
    from cobre_comm.testing.marker.running import run_on_ranks

    run_on_ranks(pyfuncitem, job, pyfuncitem.config.stash[POOLS].get)
    return True


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Fail a test if its jobs have left a name in shared memory."""
    surroundings = sys.modules.get("cobre_comm.testing.ranks.surroundings")
    assert surroundings is None or surroundings.leftovers() == []


@pytest.fixture(scope="session")
def pools(pytestconfig: pytest.Config) -> Pools:
    """Pools of ranks that all tests share, because it takes a second to start ranks."""
    return pytestconfig.stash[POOLS]


def _job(item: pytest.Function) -> MarkedJob | None:
    """Return the job of a marked test; None for a method of a ``unittest.TestCase``."""
    params: dict[str, Any] = item.callspec.params if hasattr(item, "callspec") else {}
    return params.get("comm")


def _is_marked(node: pytest.Item) -> bool:
    return node.get_closest_marker("ranks") is not None
