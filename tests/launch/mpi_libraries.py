"""MPI jobs in tests, with each of two libraries, which may be installed beside each other."""

import sys

import pytest

from cobre_comm.testing import BackendName
from tests.grid import why_not

LIBRARIES = ("openmpi", "mpich")
RUN = ("run", "--backend", "mpi", "-n")


def needs(name):
    """Skip if a library is not installed; else return variables that choose the library."""
    if sys.platform != "linux":
        pytest.skip("the launcher starts MPI ranks on Linux only")
    if why := why_not(name):
        pytest.skip(why)
    return {"MPI4PY_MPIABI": name}


def on(name):
    """Return the option and the variables with which a launcher runs a backend of the tests."""
    chosen = BackendName.parse(name)
    variables = needs(chosen.library) if chosen.library else {}
    return ("--backend", chosen.kind), variables | chosen.environment()
