"""The plan of checks: for each backend some rows of the table of cases, and the SDDP example."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from cobre_comm.backends import NAMES
from cobre_comm.check.large_calls import find_ways
from cobre_comm.check.result import COLUMNS, TIMEOUT_S, Check, Point
from cobre_comm.check.training import Witness
from cobre_comm.testing import BackendName, RankPool, leftovers
from cobre_comm.testing.cases import table
from cobre_comm.testing.cases.case import BOTH, OURS, QUICK, WHOLE, Case, Cell, perform
from cobre_comm.testing.pairwise import choose

NODES = ":0,1"  # even ranks and odd ranks behave as on two nodes, so bytes travel over MPI


def points(backends: Sequence[str], sizes: Iterable[int], *, quick: bool) -> list[Point]:
    """Return backends and numbers of ranks, in the order in which they are checked.

    ``local`` always has one rank. On one machine ``mpi`` shares memory like ``shm``. Therefore
    ``mpi`` is also checked as if on two nodes, so that bytes travel over MPI; a quick check leaves
    this out.
    """
    several = sorted(set(sizes))
    found = []
    for backend in backends:
        name = BackendName.parse(backend)
        found += [Point(backend, size) for size in ([1] if backend == "local" else several)]
        if name.is_mpi and not name.nodes and not quick and several[-1] > 1:
            found.append(Point(backend + NODES, several[-1]))
    return found


def checks(point: Point, witness: Witness, *, quick: bool) -> list[Check]:
    """Return the checks of a backend with a number of ranks, in the order of the columns."""
    found = [
        Check(column, title, partial(_perform, case, cells))
        for module, cases in table().items()
        for case in cases
        if _is_for(case, point, quick=quick)
        for column, title, cells in _by_caller(module, case, _callers(point))
    ]
    if _is_ours(point):
        found.append(Check("killed", "nothing is left in shared memory", _nothing_left))
    if _is_ours(point) and point.ranks > 1 and not BackendName.parse(point.backend).nodes:
        found.append(Check("python", "large calls: all ranks take the same way", find_ways))
    found += witness.checks(point)
    return sorted(found, key=lambda check: list(COLUMNS).index(check.column))


def _is_ours(point: Point) -> bool:
    return BackendName.parse(point.backend).kind in NAMES


def _callers(point: Point) -> tuple[str, ...]:
    return BOTH if _is_ours(point) else BOTH[:1]


def _is_for(case: Case, point: Point, *, quick: bool) -> bool:
    """Whether a case is tried at a point.

    A backend of another distribution may lack features. So it is tried only on the cases that all
    backends pass; ``cobre_comm.testing.conformance`` tests the rest. Watchful cases are not tried
    between nodes, because MPI does not report there that a rank has ended.
    """
    if case.check not in ([QUICK] if quick else [QUICK, WHOLE]):
        return False
    if case.column not in ("", "bits") and not _is_ours(point):
        return False
    if case.where == "watchful" and BackendName.parse(point.backend).nodes:
        return False
    return point.ranks > 1 if case.sizes else True


def _by_caller(
    module: str, case: Case, callers: Sequence[str]
) -> Iterator[tuple[str, str, list[Cell]]]:
    """Yield column, name and cells for each caller; each pair of values is in one of the cells."""
    cells = [cell for cell in case.cells(callers) if not cell.is_slow]
    for caller in dict.fromkeys(cell.caller for cell in cells):
        mine = [cell for cell in cells if cell.caller == caller]
        chosen = [mine[number] for number in sorted(choose([cell.factors for cell in mine]))]
        column = case.column or ("python" if caller == "python" else "njit")
        is_told = caller and (case.column or caller not in BOTH)
        title = f"{module}: {case.name}".replace("_", " ") + f" ({caller})" * bool(is_told)
        yield column, title, chosen


def _perform(case: Case, cells: Sequence[Cell], pool: RankPool) -> None:
    for cell in cells:
        try:
            perform(case, pool, cell, OURS, TIMEOUT_S)
        except Exception as error:
            error.add_note(cell.name)
            raise


def _nothing_left(pool: RankPool) -> None:
    pool.close()
    left = leftovers()
    assert not left, f"these names were left: {', '.join(left)}"
