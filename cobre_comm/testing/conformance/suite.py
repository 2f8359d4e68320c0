"""What the classes of the suite have in common: their parameters, and what a backend cannot do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from cobre_comm.testing.conformance.grid import CALLERS, Grid
from cobre_comm.testing.conformance.here import skip_unless_here

PLUGIN = "cobre_comm.testing.plugin"
# What a backend may declare that it cannot do; the rest is part of being a communicator.
FEATURES = {
    "njit": "be an argument of compiled code",
    "regions": "make shared regions",
    "split": "split_local",
    "liveness": "see by itself that the process of a rank has ended",
    "timeouts": "give up waiting for a live rank after a limit",
    "disagreement": "see that ranks call different things",
    "signals": "end a wait for a signal, as Ctrl-C is",
    "threads": "refuse a second thread",
    "forks": "refuse to work in a forked child",
}
MIXTURES = ("either", "each its own")  # by chance, and each rank another one
# Fixture, and the field of the grid that has its parameters.
PARAMETERS = {
    "pool": "points",
    "thorough_pool": "thorough_points",
    "argument_pool": "argument_points",
    "typed_pool": "typed_points",
    "backend": "backends",
    "thorough_backend": "thorough_backends",
    "watchful_backend": "watchful_backends",
    "caller": "callers",
}


def needs(*features: str) -> pytest.MarkDecorator:
    """Mark a test that is skipped for a backend that has declared it cannot do such a thing."""
    unknown = set(features) - set(FEATURES)
    if unknown:
        raise ValueError(f"{unknown}: not among {', '.join(FEATURES)}")
    return pytest.mark.cobre_needs(*features)


def parameter_id(value: Any) -> str:
    """Return the name of a point, or of a backend, in the name of a test."""
    return value if isinstance(value, str) else "-".join(map(str, value))


class Suite:
    """Base of the classes of tests: sets the parameters of their fixtures from a grid.

    Attributes
    ----------
    grid : Grid
        Set by the class that pytest collects.
    cannot : mapping
        What the backend cannot do, one of :data:`FEATURES`, and why. Tests of it are skipped, and
        give the reason.
    """

    grid: ClassVar[Grid]
    cannot: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        unknown = set(cls.cannot) - set(FEATURES)
        if unknown:
            raise ValueError(
                f"{cls.__name__}.cannot: {unknown} unknown; choose from {', '.join(FEATURES)}"
            )

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give the fixtures of a test the points of the grid."""
        if not metafunc.config.pluginmanager.has_plugin(PLUGIN):
            raise pytest.UsageError(
                f"the conformance suite needs its plugin: pytest -p {PLUGIN}, or "
                f'pytest_plugins = ["{PLUGIN}"] in the conftest.py of the root folder'
            )
        if not hasattr(self, "grid"):
            raise pytest.UsageError(f'{type(self).__name__} has no grid: grid = Grid.of("mine")')
        marks = metafunc.definition.iter_markers("parametrize")
        given = [name for mark in marks for name in _names(mark)]
        wanted = [name for name in metafunc.fixturenames if name not in given]
        for name in wanted:
            if name in PARAMETERS:
                values = getattr(self.grid, PARAMETERS[name])
                metafunc.parametrize(name, values, ids=parameter_id, indirect=True)
        if "any_caller" in wanted:
            mixtures = MIXTURES if set(CALLERS) <= set(self.grid.callers) else ()
            metafunc.parametrize("any_caller", [*self.grid.callers, *mixtures])

    def callers(self) -> list[str]:
        """Return those of the grid's callers that the backend can have."""
        return [caller for caller in self.grid.callers if caller not in self.cannot]

    @pytest.fixture(autouse=True)
    def only_what_it_can(self, request: pytest.FixtureRequest) -> None:
        """Skip a test of what the backend has declared that it cannot do."""
        cannot = dict(self.cannot)
        if "njit" not in self.grid.callers:
            cannot.setdefault("njit", f"the callers of the grid are {self.grid.callers}")
        needed = {n for mark in request.node.iter_markers("cobre_needs") for n in mark.args}
        params = request.node.callspec.params if hasattr(request.node, "callspec") else {}
        if not {params.get("caller"), params.get("any_caller")} <= {None, "python"}:
            needed.add("njit")
        for feature in sorted(needed & set(cannot)):
            pytest.skip(f"{feature}: {cannot[feature]}")

    @pytest.fixture
    def pool(self, request: pytest.FixtureRequest, pools: Any) -> Any:
        """Return running ranks."""
        return pools.get(*request.param)

    @pytest.fixture
    def thorough_pool(self, request: pytest.FixtureRequest, pools: Any) -> Any:
        """Return running ranks for what takes long on each."""
        return pools.get(*request.param)

    @pytest.fixture
    def argument_pool(self, request: pytest.FixtureRequest, pools: Any) -> Any:
        """Return running ranks for what is about arguments."""
        return pools.get(*request.param)

    @pytest.fixture
    def typed_pool(self, request: pytest.FixtureRequest, pools: Any) -> Any:
        """Return running ranks for what compiles much."""
        return pools.get(*request.param)

    @pytest.fixture
    def caller(self, request: pytest.FixtureRequest) -> Any:
        """Return who calls: Python, or compiled code."""
        return request.param

    @pytest.fixture
    def backend(self, request: pytest.FixtureRequest) -> Any:
        """Return the name of a backend."""
        return skip_unless_here(request.param)

    @pytest.fixture
    def thorough_backend(self, request: pytest.FixtureRequest) -> Any:
        """Return the name of a backend for what takes long on each."""
        return skip_unless_here(request.param)

    @pytest.fixture
    def watchful_backend(self, request: pytest.FixtureRequest) -> Any:
        """Return a backend that sees the end of a rank's process at once."""
        return skip_unless_here(request.param)


def _names(parametrize: pytest.Mark) -> list[str]:
    """Return the arguments to which a mark gives values."""
    names = parametrize.args[0] if parametrize.args else parametrize.kwargs["argnames"]
    return [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
