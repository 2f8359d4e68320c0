"""The backends that the launcher can start: for each, what tells one rank where to meet."""

from __future__ import annotations

from collections.abc import Callable

from cobre_comm.config import BackendKind
from cobre_comm.errors import BackendNotAvailable
from cobre_comm.processes.job import Job


def _local(job: Job, rank: int) -> dict[str, str]:
    return {}


def _shm(job: Job, rank: int) -> dict[str, str]:
    found = {
        "COBRE_SHM_NAME": job.shm_name,
        "COBRE_SHM_RANK": str(rank),
        "COBRE_SHM_SIZE": str(job.size),
    }
    if job.timeout_s is not None:
        found["COBRE_SHM_TIMEOUT_SECS"] = f"{job.timeout_s:.17g}"
    return found


def _tcp(job: Job, rank: int) -> dict[str, str]:
    assert job.rendezvous is not None
    found = {
        "COBRE_TCP_COORDINATOR": job.rendezvous.host,
        "COBRE_TCP_PORT": str(job.rendezvous.port),
        "COBRE_TCP_BIND_ADDR": job.rendezvous.bind_addr,
        "COBRE_TCP_RANK": str(rank),
        "COBRE_TCP_SIZE": str(job.size),
        "COBRE_TCP_TOKEN": job.token,
    }
    if job.timeout_s is not None:
        found["COBRE_TCP_TIMEOUT_SECS"] = f"{job.timeout_s:.17g}"
    return found


def _mpi(job: Job, rank: int) -> dict[str, str]:
    # Which rank it is, mpiexec says.
    return {} if job.timeout_s is None else {"COBRE_MPI_TIMEOUT_SECS": f"{job.timeout_s:.17g}"}


# A backend that has an entry here can be started.
VARIABLES: dict[str, Callable[[Job, int], dict[str, str]]] = {
    "local": _local,
    "shm": _shm,
    "tcp": _tcp,
    "mpi": _mpi,
}


def choose_backend(name: str, size: int, *, prefer_tcp: bool = False) -> str:
    """Return the backend to start ``size`` ranks with.

    Raises
    ------
    InvalidBackend
        For a name that is not a backend's.
    BackendNotAvailable
        For a backend that the launcher cannot start.
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
    if kind.value not in VARIABLES:
        raise BackendNotAvailable(kind.value, VARIABLES)
    return kind.value
