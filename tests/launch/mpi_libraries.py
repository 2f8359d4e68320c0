"""MPI jobs in tests, with both libraries that may be installed beside each other."""

import sys

import pytest

from cobre_comm.compile import warm
from cobre_comm.processes.mpi.mpiexec import find_mpiexec
from tests.grid import why_not
from tests.launch.command import environment

LIBRARIES = ("openmpi", "mpich")
RUN = ("run", "--backend", "mpi", "-n")


def needs(name):
    """Skip if a library is not installed; else compile, and return variables that choose it."""
    if sys.platform != "linux":
        pytest.skip("the launcher starts MPI ranks on Linux only")
    if why := why_not(name):
        pytest.skip(why)
    chosen = {"MPI4PY_MPIABI": name}
    environ = find_mpiexec(environment(**chosen)).environment
    warm.warm_up(warm.kernel_sets(["mpi"], environ, machines=2), environ)
    return chosen
