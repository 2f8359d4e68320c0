"""Whether the ranks of a backend can start on this machine."""

from __future__ import annotations

import functools

import pytest

from cobre_comm.testing.backend_name import BackendName
from cobre_comm.testing.ranks.surroundings import startable_mpi


@functools.cache
def why_not(library: str | None) -> str:
    """Return the reason why ranks of that MPI cannot start here, or an empty string."""
    return startable_mpi(library)[1]


def skip_unless_here(backend: str) -> str:
    """Skip the test if its backend needs an MPI that is not here; else return the name."""
    name = BackendName.parse(backend)
    if name.is_mpi and why_not(name.library):
        pytest.skip(f"{backend}: {why_not(name.library)}")
    return backend
