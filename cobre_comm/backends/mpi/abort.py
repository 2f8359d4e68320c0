"""An uncaught exception ends the whole job, and so does ``abort``.

Otherwise the other ranks would wait for this rank for ever: in collectives of other libraries, or
in MPI_Finalize, which this rank does not reach. So this rank prints the traceback, says goodbye,
and then calls MPI_Abort.

Under a launcher, a rank does not abort if its error names a lost rank with a process that still
runs, because an abort would end that process before it has given its exit code. In this case all
ranks go to MPI_Finalize, and the launcher ends the ranks that do not get through.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from types import TracebackType

from cobre_comm.reports import raised, report_pipe
from cobre_comm.system.streams import flush_output

OUTPUT_S = 0.2  # Hydra drops output that is still in its pipes when a job is aborted


@functools.cache
def install() -> None:
    """Set, once, an exception hook that runs the present hook first and then aborts the job."""
    before = sys.excepthook

    def hook(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        try:
            before(kind, error, traceback)
        finally:
            if raised.uncaught() is error:
                raised.end_all(error)
                if not report_pipe.awaits_lost_ranks(error):
                    abort_world(130 if issubclass(kind, KeyboardInterrupt) else 1)

    sys.excepthook = hook


def abort_world(code: int) -> None:
    """Make MPI end all its ranks; do nothing if MPI is not running any more."""
    from mpi4py import MPI

    if not MPI.Is_initialized() or MPI.Is_finalized():
        return
    flush_output()
    time.sleep(OUTPUT_S)
    MPI.COMM_WORLD.Abort(code)
    os._exit(code)  # in MPICH, MPI_Abort returns: it only asks mpiexec to end this process
