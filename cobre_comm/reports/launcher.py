"""Which program has started the processes of a job, as far as a rank can see."""

from __future__ import annotations

from collections.abc import Mapping

from cobre_comm.reports import report_pipe

# By a variable that a launcher sets. A launcher may start another one, so the nearest comes first.
_BY_VARIABLE = {
    "COBRE_JOB_ID": "cobre-comm run",
    "TORCHELASTIC_RUN_ID": "torchrun",
    "OMPI_COMM_WORLD_SIZE": "mpiexec",
    "SLURM_STEP_ID": "srun",
    "PMI_SIZE": "mpiexec",
    "MPI_LOCALNRANKS": "mpiexec",
}


def launcher_name(environ: Mapping[str, str]) -> str:
    """Return the name of the launcher of this process; "" for one that was started by hand."""
    named = (name for variable, name in _BY_VARIABLE.items() if environ.get(variable))
    return report_pipe.launcher() or next(named, "")
