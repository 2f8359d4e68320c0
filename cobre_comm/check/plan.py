"""What is checked where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cobre_comm.check import bits, collectives, errors, regions
from cobre_comm.check.backends import OURS
from cobre_comm.check.result import Check, Point
from cobre_comm.check.training import Witness
from cobre_comm.testing.backend_name import BackendName

SIZES = (1, 2, 4)
QUICK_SIZES = (2,)
NODES = ":0,1"  # ranks behave as on two nodes in turn, and those of different ones speak over MPI


def points(backends: Sequence[str], sizes: Iterable[int], *, quick: bool) -> list[Point]:
    """Return backends and numbers of ranks, in the order in which they are checked.

    ``local`` is one rank whatever is asked for. On one machine ``mpi`` shares memory as ``shm``
    does; so that bytes go over MPI too, it is tried as on two nodes, unless in a quick check.
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
    """Return what is checked on a backend with a number of ranks.

    Of another distribution's backend nobody here knows what it cannot do, so only what all can is
    tried; ``cobre_comm.testing.conformance`` is for the rest.
    """
    if BackendName.parse(point.backend).kind not in OURS:
        return [
            *collectives.checks("python", quick=quick),
            *bits.checks(callers=("python",), quick=quick),
        ]
    both = ("python", "njit")
    return [
        *(check for caller in both for check in collectives.checks(caller, quick=quick)),
        *regions.checks(quick=quick),
        *errors.checks(point.ranks, callers=both, quick=quick),
        *bits.checks(callers=both, quick=quick),
        *errors.endings(point.backend, point.ranks, quick=quick),
        *witness.checks(point),
    ]
