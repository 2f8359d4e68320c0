"""The bridge gives what mpi4py gives: one program with all calls runs over each of the two."""

import functools
import json
import pathlib

import pytest

from tests.grid import slow
from tests.launch.command import cobre
from tests.launch.mpi_libraries import RUN, needs

QUIET = {"OMPI_MCA_osc": "^ucx"}  # otherwise Open MPI writes meaningless lines about windows
EVERYTHING = pathlib.Path(__file__).parent / "programs" / "everything.py"


def told(size, *words, **variables):
    """Return what each rank of a job got from each call."""
    done = cobre("run", "-n", size, *words, EVERYTHING, **variables)
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line.partition("told ")[2]) for line in sorted(done.stdout.splitlines())]


@functools.cache
def told_by_mpi4py(library, size):
    return told(size, *RUN[1:-1], **needs(library), **QUIET)


@pytest.mark.parametrize("library", ["mpich", slow("openmpi")])
@pytest.mark.parametrize("backend", ["shm", "tcp"])
@pytest.mark.parametrize("size", [slow(1), slow(2), 3, slow(5)])
def test_every_call_gives_what_mpi4py_gives(backend, size, library):
    ours = told(size, "--as-mpi4py", "--backend", backend)
    for mine, theirs in zip(ours, told_by_mpi4py(library, size), strict=True):
        assert mine == theirs
