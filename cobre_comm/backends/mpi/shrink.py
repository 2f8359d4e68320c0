"""Go on after a rank is lost, where Open MPI runs in its fault-tolerant mode.

MPI agrees here on who is left, by the functions that ULFM has proposed for it. A survivor revokes
the old communicator, so that nobody waits in it, and shrinks it. Then all make theirs, and agree
whether each of them could: ``MPI_Comm_agree`` says the same to all, also if one dies in it. If one
could not, all shrink again.

Source: W. Bland et al., "Post-failure recovery of MPI communication capability", Int. J. of HPC
Applications 27 (2013).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

from cobre_comm.backends.mpi.split import beside
from cobre_comm.common.running_time import running_s
from cobre_comm.errors import InitializationFailed

if TYPE_CHECKING:
    from mpi4py import MPI

FAULT_TOLERANT = "OMPI_MCA_mpi_ft_enable"  # set by Open MPI's `mpiexec --with-ft ulfm`

T = TypeVar("T")


def check_that_ranks_survive(nodes: int) -> None:
    """Raise ``InitializationFailed`` unless MPI lets ranks go on when one is lost.

    Over several nodes it does not: with messages under way, Open MPI 5.0.11 shrinks without end.
    """
    if nodes > 1 or os.environ.get(FAULT_TOLERANT, "0") not in ("1", "true"):
        raise InitializationFailed(
            "mpi",
            "MPI ends the whole job when a rank is lost; start it by `cobre-comm run "
            "--max-restarts N`, on shm or tcp, where survivors go on, or on one machine by Open "
            "MPI's `mpiexec --with-ft ulfm`",
        )


def go_on(world: MPI.Intracomm, timeout_s: float, make: Callable[[MPI.Intracomm], T]) -> T:
    """Return what ``make`` makes of the survivors; all of them get one, or an error.

    Parameters
    ----------
    world : MPI.Intracomm
        Of all ranks, broken.
    timeout_s : float
        How long a survivor may take to come; 0: no limit.
    make : callable
        Makes the result on the communicator of the survivors.
    """
    from mpi4py import MPI

    world.Revoke()
    while True:
        left = cast("MPI.Intracomm", beside(world.Shrink, _limit(timeout_s)))
        left.Set_errhandler(MPI.ERRORS_RETURN)
        made = None
        try:
            made = make(left)
        except (MPI.Exception, InitializationFailed):
            with contextlib.suppress(MPI.Exception):
                left.Revoke()  # for those that still wait in it
        if _all_could(world, made is not None) and made is not None:
            return made


def _all_could(world: MPI.Intracomm, could: bool) -> bool:
    """Tell whether all survivors could; the same on each of them."""
    from mpi4py import MPI

    try:
        world.Ack_failed(world.size)
        return bool(world.Agree(int(could)))
    except MPI.Exception:  # a rank has died that not all had acknowledged: so on all
        return False


def _limit(timeout_s: float) -> Callable[[], None]:
    """Return a function that raises once the survivors have had the time to come."""
    until = running_s() + timeout_s if timeout_s else float("inf")

    def look() -> None:
        if running_s() > until:
            raise InitializationFailed(
                "mpi",
                f"only some of the survivors called shrink within {timeout_s:g} s; all call it "
                "once they have CollectiveFailed, or raise COBRE_MPI_TIMEOUT_SECS",
            )

    return look
