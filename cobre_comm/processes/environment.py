"""The environment of a rank: rendezvous and threads, without variables of other launchers."""

from __future__ import annotations

from collections.abc import Mapping

from cobre_comm.backends import BY_NAME, SPECS
from cobre_comm.backends.tcp.foreign import CONNECT_TIMEOUT_MS
from cobre_comm.processes.binding import UNBOUND, Binding
from cobre_comm.processes.job import Job
from cobre_comm.reports import report_pipe, seat
from cobre_comm.reports.launcher import LIMIT_VARIABLE
from cobre_comm.system.cores import spin_us, usable_cores

THREAD_VARIABLES = (
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
)
# For more ranks than cores: these make MPICH and Open MPI yield their core while they wait.
YIELDING = {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}


def rank_environment(
    job: Job, rank: int, base: Mapping[str, str], binding: Binding = UNBOUND
) -> dict[str, str]:
    """Return the whole environment of a rank.

    Variables that the user has set in ``base``, the environment of the launcher, stay. But the
    variables by which another launcher, ours or an MPI's, has told this process its rank and job
    are removed.
    """
    foreign = {report_pipe.VARIABLE, report_pipe.HOLDS_VARIABLE, seat.VARIABLE}
    foreign.update(name for spec in SPECS for name in (*spec.auto_variables, *spec.rank_variables))
    environment = {name: value for name, value in base.items() if name not in foreign}
    environment |= {"COBRE_COMM_BACKEND": job.backend, **attempt_variables(job)}
    environment |= rendezvous_variables(job, rank)
    for name, value in _chosen(job, binding).items():
        if not environment.get(name):
            environment[name] = value
    return environment


def attempt_variables(job: Job) -> dict[str, str]:
    """Return the variables that differ between the attempts of a job."""
    return {"COBRE_JOB_ID": job.identity, "COBRE_RESTART": str(job.restart)}


def _chosen(job: Job, binding: Binding) -> dict[str, str]:
    """Return the variables that the launcher chooses because the user has not set them."""
    cores, here = usable_cores(), len(job.ranks)
    threads = binding.threads or max(1, cores // here)
    chosen = dict.fromkeys(THREAD_VARIABLES, str(threads))
    chosen["PYTHONUNBUFFERED"] = "1"
    if binding.cpus:
        # A bound rank sees only its own cores. It cannot tell by itself whether other ranks share
        # them.
        chosen["COBRE_COMM_SPIN_US"] = f"{spin_us(here):g}"
    if job.backend == "mpi" and here > cores:
        chosen |= YIELDING
    if job.nodes > 1:
        chosen["COBRE_TCP_CONNECT_TIMEOUT_MS"] = CONNECT_TIMEOUT_MS
    return chosen


def rendezvous_variables(job: Job, rank: int) -> dict[str, str]:
    """Return the variables that tell a rank where to meet, and how long to wait."""
    spec = BY_NAME[job.backend]
    found = {name: value(job, rank) for name, value in spec.rank_variables.items()}
    if job.timeout_s is not None and spec.timeout_variable:
        found[spec.timeout_variable] = f"{job.timeout_s:.17g}"
        found[LIMIT_VARIABLE] = "1"
    return found
