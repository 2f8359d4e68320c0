"""Survivors go on over MPI, on one machine and where Open MPI is fault-tolerant."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from cobre_comm import CollectiveFailed, MpiBackend
from cobre_comm.processes.mpi.mpiexec import find_mpiexec
from tests.grid import skip_unless_here

LIMIT_S = 120


def be_rank(victims):
    """Lose ranks, go on with the others, and print who is left."""
    with MpiBackend() as comm:
        me, values = comm.rank, np.ones(3)
        try:
            while True:
                comm.allreduce(values, np.empty(3))
                if me in victims:
                    os.kill(os.getpid(), signal.SIGKILL)
        except CollectiveFailed:
            left = comm.shrink()
    with left:
        members = np.zeros(left.size, np.int64)
        left.allgather(np.array([me]), members)
        for _ in range(100):
            assert left.sum(me) == members.sum()
    print("left:", *members)


@pytest.mark.parametrize("victims", [[1], pytest.param([0, 2], marks=pytest.mark.slow)])
def test_shrink(victims):
    skip_unless_here("mpi-openmpi")
    starter = find_mpiexec({**os.environ, "MPI4PY_MPIABI": "openmpi"})
    code = f"from tests.faults.mpi.test_shrink import be_rank; be_rank({victims})"
    command = [*starter.command, "--with-ft", "ulfm", "--map-by", ":OVERSUBSCRIBE", "-n", "4"]
    done = subprocess.run(
        [*command, sys.executable, "-c", code],
        env=starter.environment, capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    spared = [str(rank) for rank in range(4) if rank not in victims]
    assert done.stdout.count(f"left: {' '.join(spared)}") == len(spared), done.stdout + done.stderr
