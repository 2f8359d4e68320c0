"""Which program has started the processes of a job, and which options the user has given it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from cobre_comm.reports import report_pipe

RUN = "cobre-comm run"
# For each launcher, a variable that it sets. One launcher may start another; the launcher that is
# nearest to the rank comes first.
_BY_VARIABLE = {
    "COBRE_JOB_ID": RUN,
    "TORCHELASTIC_RUN_ID": "torchrun",
    "OMPI_COMM_WORLD_SIZE": "mpiexec",
    "SLURM_STEP_ID": "srun",
    "PMI_SIZE": "mpiexec",
    "MPI_LOCALNRANKS": "mpiexec",
}
LIMIT_VARIABLE = "COBRE_TIMEOUT_GIVEN"  # set by a launcher if the user has given the timeout
TIMEOUT_VARIABLE = "COBRE_COMM_TIMEOUT_SECS"  # for a backend if its own variable is not set
ON_MACHINES = {  # by a variable that `cobre-comm run` sets: the option that decides its value
    "COBRE_TCP_SIZE": "-n and --nnodes, which all launchers of a job share",
    "COBRE_TCP_RANK": "--node-rank, which differs between the launchers of a job",
}


def given(variable: str) -> str:
    """Return the option by which a launcher got the value of a variable, or else the variable.

    If the timeout of one backend is not set, the variable for all backends is returned.
    """
    name = launcher_name(os.environ)
    if variable.endswith("_TIMEOUT_SECS") and os.environ.get(LIMIT_VARIABLE):
        return "--timeout" if name == RUN else f"timeout of {name}"
    if variable.endswith("_TIMEOUT_SECS") and not os.environ.get(variable):
        return TIMEOUT_VARIABLE
    return ON_MACHINES.get(variable, variable) if name == RUN else variable


def launcher_name(environ: Mapping[str, str]) -> str:
    """Return the name of the launcher of this process; "" if it was started by hand."""
    named = (name for variable, name in _BY_VARIABLE.items() if environ.get(variable))
    return report_pipe.launcher() or next(named, "")
