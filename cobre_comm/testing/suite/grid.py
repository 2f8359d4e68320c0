"""The backends and numbers of ranks on which the suite runs."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cobre_comm.testing.backend_name import BackendName
from cobre_comm.testing.cases.case import BOTH, QUICK, Case, Cell, Settings, Slow
from cobre_comm.testing.pairwise import choose

POINT = "point"  # a factor: each of its values is needed, but few combinations with others
EVERYWHERE = "everywhere"  # a factor: a case and its point together
TRANSPORT = "transport"  # a factor: the way; between nodes also the MPI and the number of leaders
PAIRED = ("case", "way", "caller")  # the factors of which a usual run has all pairs
FEW = 3  # how many ranks try wrong arguments: a first, a last, and one between


class Trial(NamedTuple):
    """A case on a number of ranks of a backend."""

    case: Case
    cell: Cell
    backend: str
    size: int
    is_slow: bool

    @property
    def name(self) -> str:
        """The name of the test, in brackets."""
        words = [self.cell.name, f"{self.backend}-{self.size}", self.cell.caller]
        return "-".join(filter(None, words))

    @property
    def factors(self) -> dict[str, str]:
        """The value of each factor of the trial."""
        where = {"case": self.case.name, **factors_of_point(self.backend, self.size)}
        if self.case.everywhere:
            where[EVERYWHERE] = f"{self.case.name} on {where[POINT]}"
        return {**where, **self.cell.factors}

    @property
    def own_factors(self) -> dict[str, str]:
        """The factors without the point; the name of the case is put before the case's own factors.

        So a run that has every value of these factors has all values of each case, but not every
        point.
        """
        of_case = [name for name in self.cell.factors if name not in PAIRED]
        return {
            f"{self.case.name}: {name}" if name in of_case else name: value
            for name, value in self.factors.items()
            if name not in (POINT, EVERYWHERE)
        }


@dataclass(frozen=True)
class Grid(Settings):
    """The points on which each kind of case is tried.

    A point is a tuple ``(backend, size)``. Cases that choose the number of ranks by themselves,
    mostly 2, 3 or 4, have names of backends in place of points. Only long runs try ``Slow(point)``.

    Attributes
    ----------
    points : sequence
        The points of most cases.
    thorough_points : sequence
        The points of cases that take long at each point.
    argument_points : sequence
        The points of cases that try many wrong arguments.
    typed_points : sequence
        The points of cases that each backend tries once.
    backends : sequence
        Backends with several ranks, for cases that choose the number of ranks.
    watchful_backends : sequence
        Those of ``backends`` that notice at once when the process of a rank ends.
    quick_points : sequence
        The points that are tried when there is little time.
    callers : sequence of str
        ``"python"``, and ``"njit"`` for calls from compiled code.
    """

    points: Sequence[Any] = ()
    thorough_points: Sequence[Any] = ()
    argument_points: Sequence[Any] = ()
    typed_points: Sequence[Any] = ()
    backends: Sequence[Any] = ()
    watchful_backends: Sequence[Any] = ()
    quick_points: Sequence[Any] = ()
    callers: Sequence[str] = BOTH

    @classmethod
    def of(
        cls,
        backend: str,
        sizes: Sequence[int] = (1, 2, 3, 4),
        callers: Sequence[str] = BOTH,
        *,
        shares_memory: bool = True,
        timeout_variable: str | None = None,
        **buffers: Any,
    ) -> Grid:
        """Return the grid of one backend.

        Parameters
        ----------
        backend : str
            The name of the backend in the entry-point group ``cobre_comm.backends``.
        sizes : sequence of int
            Numbers of ranks. If one of them is above 1, cases that choose the number by themselves
            run too. A fold in a wrong order shows with 3 ranks or more, a fold by pairs with 4 or
            more.
        callers : sequence of str
            ``("python",)`` for a backend that cannot be an argument of compiled code.
        shares_memory : bool
            Whether all ranks of a machine see one copy of a region; otherwise each has its own.
        timeout_variable : str, optional
            As in :attr:`timeout_variables`; ``COBRE_<BACKEND>_TIMEOUT_SECS`` by default.
        **buffers : mapping
            ``smallest_buffers`` and ``small_buffers``; without them, the cases of many chunks run
            with the default buffers.
        """
        points = [(backend, size) for size in sizes]
        several = [size for size in sizes if size > 1]
        backends = (backend,) if several else ()
        variable = timeout_variable or f"COBRE_{backend.upper()}_TIMEOUT_SECS"
        return cls(
            points=points,
            thorough_points=points,
            argument_points=[(backend, min(sizes)), *([(backend, FEW)] if several else [])],
            typed_points=[(backend, min(several, default=1))],
            backends=backends,
            watchful_backends=backends,
            quick_points=points,
            callers=tuple(callers),
            timeout_variables={backend: variable},
            nodes=Settings.nodes if shares_memory else each_alone,
            **buffers,
        )

    def trials(self, case: Case) -> Iterator[Trial]:
        """Yield all trials of a case: every point with every cell."""
        cells = [*case.cells(self.callers)]
        for point in self._points(case):
            is_slow = isinstance(point, Slow)
            backend, size = point.value if is_slow else point
            for cell in cells:
                yield Trial(case, cell, backend, size, is_slow or cell.is_slow)

    def is_quick(self, trial: Trial) -> bool:
        """Whether a quick run has time for the trial.

        A case that chooses the number of ranks is tried with the smallest number that it chooses.
        Such a case is not tried on a backend that is shared memory under another name, because
        ranks of these backends take seconds to start.
        """
        backends = {backend for backend, _ in self.quick_points}
        here = (
            trial.backend in backends
            and trial.size == min(trial.case.sizes)
            and (way_of(trial.backend) != "shm" or trial.backend == "shm")
            if trial.case.sizes
            else ((trial.backend, trial.size) in self.quick_points)
        )
        return trial.case.check == QUICK and here and not trial.is_slow

    @functools.cached_property
    def usual_points(self) -> set[str]:
        """The few points that a usual run prefers, because ranks have to start for each point.

        The points are those of a quick run, and more points, until each way is tried on each number
        of ranks.
        """
        points = [*self.quick_points, *(p for p in self.points if not isinstance(p, Slow))]
        rows = [factors_of_point(*point) for point in points]
        names = [row.pop(POINT) for row in rows]
        quick = range(len(self.quick_points))
        return {names[number] for number in choose(rows, 2, quick, [TRANSPORT])}

    def _points(self, case: Case) -> Iterator[Any]:
        where = {"arguments": "argument_points", "points": "points"}
        if not case.sizes:
            yield from getattr(self, where.get(case.where, f"{case.where}_points"))
            return
        is_watchful = case.where == "watchful"
        for backend in self.watchful_backends if is_watchful else self.backends:
            for size in case.sizes:
                name = backend.value if isinstance(backend, Slow) else backend
                if case.where != "one node" or len(set(self.nodes(name, size))) == 1:
                    yield type(backend)((name, size)) if isinstance(backend, Slow) else (name, size)


def factors_of_point(backend: str, size: int) -> dict[str, str]:
    """Return the factors of a trial that its point decides."""
    name = BackendName.parse(backend)
    way = way_of(backend)
    lanes = f" by {name.leaders} leaders" if name.leaders > 1 else ""
    return {
        "way": way,
        TRANSPORT: f"{name.library} {way}{lanes}" if name.nodes else way,
        "ranks": str(size),
        POINT: f"{backend} {size}",
    }


def way_of(backend: str) -> str:
    """Return how ranks communicate; on one node tcp and mpi have the collectives of shm."""
    name = BackendName.parse(backend)
    if name.nodes:
        return f"{name.kind} over nodes"
    return "shm" if name.kind in ("tcp", "mpi") else name.kind


def each_alone(backend: str, size: int) -> list[int]:
    """Return a node of its own for each rank, for ranks that share nothing."""
    return list(range(size))
