"""The backends that the launcher can start: for each, what tells one rank where to meet."""

from __future__ import annotations

from cobre_comm.backends import BY_NAME, SPECS
from cobre_comm.config import BackendKind
from cobre_comm.processes.job import Job


def rank_variables(job: Job, rank: int) -> dict[str, str]:
    """Return the variables that tell a rank where to meet, and for how long to wait."""
    spec = BY_NAME[job.backend]
    found = spec.rank_variables(job, rank)
    if job.timeout_s is not None and spec.timeout_variable:
        found[spec.timeout_variable] = f"{job.timeout_s:.17g}"
    return found


def place_variables() -> set[str]:
    """Return the variables by which another launcher may have said which rank this is."""
    return {name for spec in SPECS for name in spec.place_variables}


def choose_backend(name: str, size: int, *, prefer_tcp: bool = False) -> str:
    """Return the backend to start ``size`` ranks with.

    Raises
    ------
    InvalidBackend
        For a name that is not a backend's.
    ValueError
        For ``local`` with several ranks.
    """
    kind = BackendKind.parse(name)
    if kind is BackendKind.AUTO:
        several = BackendKind.TCP if prefer_tcp else BackendKind.SHM
        kind = BackendKind.LOCAL if size == 1 else several
    if kind is BackendKind.LOCAL and size > 1:
        raise ValueError(
            f"backend 'local' is one process and cannot have {size} ranks; use shm, or one rank"
        )
    return kind.value
