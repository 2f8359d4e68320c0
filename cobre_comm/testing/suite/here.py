"""Whether the ranks of a backend can start on this machine."""

from __future__ import annotations

import functools

import pytest

from cobre_comm.errors import BackendError
from cobre_comm.testing.backend_name import BackendName


@functools.cache
def why_not(library: str | None) -> str:
    """Return what keeps ranks of that MPI from starting here, or an empty string."""
    from cobre_comm.processes.mpi.mpiexec import find_mpiexec
    from cobre_comm.testing.ranks.surroundings import inherited_environment

    chosen = {"MPI4PY_MPIABI": library} if library else {}
    try:
        found = find_mpiexec({**inherited_environment(), **chosen}).library
    except BackendError as error:
        return str(error)
    return "" if library in (None, found) else f"mpi4py loads {found} here, not {library}"


def skip_unless_here(backend: str) -> str:
    """Skip the test if its backend is a kind of mpi that is not installed; or return it."""
    name = BackendName.parse(backend)
    if name.is_mpi and why_not(name.library):
        pytest.skip(f"{backend}: {why_not(name.library)}")
    return backend
