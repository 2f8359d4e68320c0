"""Which backends and numbers of ranks the suite runs on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cobre_comm.testing.backend_name import BackendName, node_of_ranks

CALLERS = ("python", "njit")
FEW = 3  # ranks on which wrong arguments are tried: a first, a last, and one between


@dataclass(frozen=True)
class Grid:
    """The points on which each kind of test runs.

    A point is a tuple ``(backend, size)``, or a ``pytest.param`` of one that carries marks. Where
    a test chooses the number of ranks by itself (2, 3 or 4, most often) there are names of
    backends instead, or ``pytest.param`` of them.

    Attributes
    ----------
    points : sequence
        For most tests.
    thorough_points : sequence
        For tests that take long at each of their points.
    argument_points : sequence
        For tests of wrong arguments, of which each runs many.
    typed_points : sequence
        For tests that compile for many types: each backend once.
    backends : sequence
        For tests that choose the number of ranks, of those with several.
    thorough_backends : sequence
        Of these, the ones for tests that take long.
    watchful_backends : sequence
        Of these, the ones that see at once when the process of a rank ends.
    callers : sequence of str
        ``"python"``, and ``"njit"`` for calls from compiled code.
    smallest_buffers : mapping
        Environment variables with which 4 KiB are more than one chunk of every transport.
    small_buffers : mapping
        Environment variables with which some messages of a few KiB are long and others short,
        where a backend treats them differently.
    timeout_variables : mapping
        The variable that says how long a live rank is waited for, by kind of backend.
    nodes : callable
        ``nodes(backend, size)``: for each rank a number that is the same for those who share
        regions with it.
    """

    points: Sequence[Any]
    thorough_points: Sequence[Any] = ()
    argument_points: Sequence[Any] = ()
    typed_points: Sequence[Any] = ()
    backends: Sequence[Any] = ()
    thorough_backends: Sequence[Any] = ()
    watchful_backends: Sequence[Any] = ()
    callers: Sequence[str] = CALLERS
    smallest_buffers: Mapping[str, str] = field(default_factory=dict)
    small_buffers: Mapping[str, str] = field(default_factory=dict)
    timeout_variables: Mapping[str, str] = field(default_factory=dict)
    nodes: Callable[[str, int], list[int]] = node_of_ranks

    @classmethod
    def of(
        cls,
        backend: str,
        sizes: Sequence[int] = (1, 2, 3, 4),
        callers: Sequence[str] = CALLERS,
        *,
        shares_memory: bool = True,
        timeout_variable: str | None = None,
        smallest_buffers: Mapping[str, str] | None = None,
        small_buffers: Mapping[str, str] | None = None,
    ) -> Grid:
        """Return the grid of one backend.

        Parameters
        ----------
        backend : str
            Its name in the entry-point group ``cobre_comm.backends``.
        sizes : sequence of int
            Numbers of ranks. With at least one above 1, tests that choose by themselves run too.
            A wrong order of a fold shows from 3 ranks on, a fold by pairs from 4.
        callers : sequence of str
            ``("python",)`` for a backend that cannot be an argument of compiled code.
        shares_memory : bool
            Whether all ranks of a machine see one copy of a region; otherwise each has its own.
        timeout_variable : str, optional
            As in :attr:`timeout_variables`; ``COBRE_<BACKEND>_TIMEOUT_SECS`` by default.
        smallest_buffers, small_buffers : mapping, optional
            As above; without any, the tests of many chunks run with whatever is the default.
        """
        points = [(backend, size) for size in sizes]
        several = [size for size in sizes if size > 1]
        backends = (backend,) if several else ()
        return cls(
            points=points,
            thorough_points=points,
            argument_points=[(backend, min(sizes)), *([(backend, FEW)] if several else [])],
            typed_points=[(backend, min(several, default=1))],
            backends=backends,
            thorough_backends=backends,
            watchful_backends=backends,
            callers=tuple(callers),
            smallest_buffers=dict(smallest_buffers or {}),
            small_buffers=dict(small_buffers or {}),
            timeout_variables={
                backend: timeout_variable or f"COBRE_{backend.upper()}_TIMEOUT_SECS"
            },
            nodes=node_of_ranks if shares_memory else each_alone,
        )

    def timeout_of(self, seconds: float) -> dict[str, str]:
        """Return the environment variables of a limit, whatever the backend."""
        return dict.fromkeys(self.timeout_variables.values(), str(seconds))

    def small_and_bounded(self, seconds: float) -> dict[str, str]:
        """Return the variables of small buffers and of a limit."""
        return {**self.small_buffers, **self.timeout_of(seconds)}

    def timeout_variable(self, backend: str) -> str:
        """Return the variable that an error of a backend should name."""
        return self.timeout_variables[BackendName.parse(backend).kind]

    def leaders(self, backend: str, size: int) -> list[bool]:
        """Return for each rank whether it leads its node."""
        nodes = self.nodes(backend, size)
        return [nodes.index(node) == rank for rank, node in enumerate(nodes)]


def each_alone(backend: str, size: int) -> list[int]:
    """Return the nodes of ranks that share nothing."""
    return list(range(size))
