"""The jobs that a mark asks for: a test function runs once on each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pytest

from cobre_comm.backends import NAMES
from cobre_comm.factory import available_backends
from cobre_comm.testing.backend_name import BackendName
from cobre_comm.testing.ranks.run import DEFAULT_TIMEOUT_S

FORM = "@pytest.mark.ranks(4, backends=['shm', 'tcp'], timeout=60, env={}, connect=True, killed=0)"


@dataclass(frozen=True)
class MarkedJob:
    """Takes the place of the communicator in pytest's own process, which has no communicator."""

    backend: str  # as ``run_ranks`` takes it
    size: int
    timeout_s: float  # limit of the test on all ranks together
    env: Mapping[str, str] = field(repr=False)  # variables that ranks set for their communicator
    connect: bool = True  # whether ranks get a communicator; ranks without it are new processes
    killed: int = 0  # how many ranks are killed during the test

    def __getattr__(self, name: str) -> NoReturn:
        __tracebackhide__ = True
        raise AttributeError(
            f"comm.{name}: fixtures run in pytest's own process, which is no rank; "
            "call what needs a communicator in the test itself"
        )


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Make pytest collect a marked test once for each job."""
    name = metafunc.function.__name__
    if "comm" not in metafunc.fixturenames:
        refuse(f"{name} is marked with ranks: give it an argument `comm`, its communicator")
    mark = metafunc.definition.get_closest_marker("ranks")
    assert mark is not None
    try:
        metafunc.parametrize("comm", list(_jobs(*mark.args, **mark.kwargs)))
    except (TypeError, ValueError) as error:
        refuse(f"the mark of {name}: {error}; it is written {FORM}")


def refuse(sentence: str) -> NoReturn:
    """Fail the test with one sentence, without a traceback."""
    pytest.fail(sentence, pytrace=False)


def _jobs(
    *sizes: int,
    backends: Sequence[Any] = ("shm",),
    timeout: float = DEFAULT_TIMEOUT_S,
    env: Mapping[str, str] | None = None,
    connect: bool = True,
    killed: int = 0,
) -> Iterator[Any]:
    if not sizes or not all(type(size) is int and size > 0 for size in sizes):
        raise ValueError(f"numbers of ranks are positive ints, not {sizes}")
    if isinstance(backends, str) or not backends:
        raise ValueError(f"backends is a list of names, not {backends!r}")
    if not timeout > 0:
        raise ValueError(f"timeout is a number of seconds above 0, not {timeout!r}")
    for backend in backends:
        marks, name = getattr(backend, "marks", ()), _name_of(backend)
        for size in sizes:
            if name == "local" and size != 1:
                raise ValueError(f"local has one rank, not {size}")
            if not 0 <= killed < size:
                raise ValueError(f"of {size} ranks, {killed} cannot be killed: one has to judge")
            job = MarkedJob(name, size, timeout, dict(env or {}), connect, killed)
            yield pytest.param(job, marks=marks, id=f"{name}-{size}")


def _name_of(backend: Any) -> str:
    """Return the name of a backend, also from a ``pytest.param``."""
    [name] = getattr(backend, "values", [backend])
    if isinstance(name, str) and BackendName.parse(name).kind in NAMES:
        return name
    # Only now, because it takes a while to ask all distributions for their backends.
    known = dict.fromkeys([*NAMES, *available_backends()])
    if not isinstance(name, str) or BackendName.parse(name).kind not in known:
        raise ValueError(f"there is no backend {name!r}, only {', '.join(known)}")
    return name
