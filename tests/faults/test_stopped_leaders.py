"""The leader of a node is stopped: it is late to its own node, and to the others."""

import os
import pathlib
import subprocess
import time

import numpy as np
import pytest

from cobre_comm import CollectiveFailed, ReduceOp
from cobre_comm.testing import run_ranks_outcomes
from cobre_comm.testing.cases.calls import calls
from tests.grid import skip_unless_here, some, timeout_of

BACKENDS = [f"{name}:0,0,1,1" for name in ("tcp", "mpi-openmpi", "mpi-mpich")]
QUICK = [("waits", "python", BACKENDS[0]), ("waits", "njit", BACKENDS[1])]
ALL = [(when, caller, name) for when in ("waits", "moves data") for caller in ("python", "njit")
       for name in BACKENDS]  # fmt: skip


def leader_is_stopped(comm, caller, folder, when):
    """Rank 0 is stopped until all others have failed; return which ranks this one names."""
    folder, large = pathlib.Path(folder), 2**20  # no header is all of it
    made, send, recv = calls(caller, comm.rank), np.ones(large), np.empty(large)
    made.allreduce(comm, send, recv, ReduceOp.SUM)
    stop = f"""
        cd {folder}; sleep 0.3; kill -STOP {os.getpid()}; touch stopped
        for look in $(seq 300); do [ -e 1 -a -e 2 -a -e 3 ] && break; sleep 0.1; done
        kill -CONT {os.getpid()}"""
    with subprocess.Popen(["sh", "-c", stop if comm.rank == 0 else ":"]):
        while when == "waits" and comm.rank > 1 and not (folder / "stopped").exists():
            time.sleep(0.01)
        try:
            while True:
                made.allreduce(comm, send, recv, ReduceOp.SUM)
        except CollectiveFailed as error:
            (folder / str(comm.rank)).touch()
            return error.ranks


@pytest.mark.parametrize(("when", "caller", "backend"), some(QUICK, ALL))
def test_stopped_leader_is_late_to_all(when, caller, backend, tmp_path):
    """When it goes on, it does not name itself, but who gave up waiting for it."""
    skip_unless_here(backend)
    outcomes = run_ranks_outcomes(
        backend, 4, leader_is_stopped, caller, str(tmp_path), when, env=timeout_of(2)
    )
    named = [outcome.value for outcome in outcomes]
    assert named[1:] == [(0,)] * 3
    assert named[0] == (2,) if when == "waits" else 0 not in named[0]
