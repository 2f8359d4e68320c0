"""The environment that makes a process a rank, and the names that a job may leave behind."""

from __future__ import annotations

import atexit
import os
import pathlib
import secrets
from collections import deque
from collections.abc import Callable, Mapping

from cobre_comm.backends import SPECS
from cobre_comm.backends.spec import Rendezvous
from cobre_comm.errors import BackendError
from cobre_comm.processes.job import Job
from cobre_comm.processes.port import LOOPBACK, ReservedPort
from cobre_comm.testing.backend_name import BackendName

SHM_FOLDER = pathlib.Path("/dev/shm")
RECENT_JOBS = 64  # the last jobs, whose ports stay reserved, because rank 0 may start late
# Variables of this process's environment that its ranks must not inherit.
PRIVATE_PREFIXES = (
    "COBRE_", "MPI4PY_", "MPI_LOCALRANKID", "OMPI_", "PMIX_NAMESPACE", "PMIX_RANK", "PMIX_SERVER",
    "PMI_", "SLURM_",
)  # fmt: skip

LIMITS = "COBRE_TEST_LIMITS"
# Variables that tell the ranks of another distribution's backend where to meet
# (docs/howto/third-backends.md).
OF_ANOTHER: Mapping[str, Callable[[Job, int], str]] = {
    "COBRE_RANK": lambda job, rank: str(rank),
    "COBRE_SIZE": lambda job, rank: str(job.size),
    "COBRE_JOB": lambda job, rank: job.shm_name,
}

_reserved: deque[ReservedPort] = deque()


def inherited_environment() -> dict[str, str]:
    """Return this process's environment without variables that choose or configure backends."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(PRIVATE_PREFIXES)
    }


def scaled_limit(seconds: float) -> float:
    """Return how long a test may take on this machine: ``seconds`` times ``COBRE_TEST_LIMITS``."""
    return seconds * float(os.environ.get(LIMITS) or 1)


def startable_mpi(library: str | None) -> tuple[str, str]:
    """Return the MPI that starts ranks here; and, if ``library`` cannot start any, the reason.

    An mpi4py that was built for one MPI always loads this MPI.
    """
    from cobre_comm.processes.mpi.mpiexec import find_mpiexec

    chosen = {} if library is None else {"MPI4PY_MPIABI": library}
    try:
        vendor = find_mpiexec({**inherited_environment(), **chosen}).library
    except BackendError as error:
        return "", str(getattr(error, "source", "") or error)
    if library not in (None, vendor):
        return vendor, f"mpi4py loads {vendor} here, for any MPI4PY_MPIABI"
    return vendor, ""


def _prefix() -> str:
    return f"cobre-test-{os.getpid()}-"


def new_job_name() -> str:
    """Return a random name for the segment of a job; :func:`leftovers` looks for such names.

    Examples
    --------
    >>> from cobre_comm.testing import new_job_name
    >>> new_job_name().startswith("/cobre-test-")
    True
    """
    return f"/{_prefix()}{secrets.token_hex(6)}"


def leftovers() -> list[str]:
    """Return the names in shared memory that jobs of this process have left behind.

    Examples
    --------
    >>> from cobre_comm.testing import leftovers
    >>> leftovers()
    []
    """
    if not SHM_FOLDER.is_dir():
        return []
    return sorted(path.name for path in SHM_FOLDER.glob(f"{_prefix()}*"))


def rank_environment(backend: str, size: int) -> list[dict[str, str]]:
    """Return the environment variables of every rank of a new job.

    Parameters
    ----------
    backend : str
        ``"local"``, ``"shm"``, ``"tcp"``, a name of ``mpi`` (whose ranks get the rest from
        mpiexec), or the name of another distribution's backend, which gets ``COBRE_RANK``,
        ``COBRE_SIZE`` and ``COBRE_JOB``, a name that no other job has.
    size : int
        Number of ranks; 1 for ``local``.

    Returns
    -------
    list of dict
        One per rank, in rank order.

    Examples
    --------
    >>> from cobre_comm.testing import rank_environment
    >>> [rank["COBRE_SHM_RANK"] for rank in rank_environment("shm", 2)]
    ['0', '1']
    """
    if backend == "local" and size != 1:
        raise ValueError(f"local has one rank, not {size}")
    name = BackendName.parse(backend)
    rendezvous = Rendezvous(LOOPBACK, _reserve_port(), LOOPBACK) if name.kind == "tcp" else None
    job = Job(size, name.kind, identity=new_job_name()[1:], rendezvous=rendezvous)
    variables = {s.name: s.rank_variables for s in SPECS}.get(name.kind, OF_ANOTHER)
    told = [{key: value(job, rank) for key, value in variables.items()} for rank in range(size)]
    return [{**name.environment(), **each} for each in told]


def _reserve_port() -> int:
    """Return a port for a job; it stays reserved until :data:`RECENT_JOBS` other jobs got one."""
    while len(_reserved) >= RECENT_JOBS:
        _reserved.popleft().close()
    _reserved.append(ReservedPort())
    return _reserved[-1].port


@atexit.register
def _release_ports() -> None:
    """Release the ports at the end of the process, because an open socket may cause a warning."""
    while _reserved:
        _reserved.popleft().close()
