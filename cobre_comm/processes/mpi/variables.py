"""Environment variables of MPI's launchers and of batch systems."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Variables in which an outer mpiexec has told this process its rank, and COBRE_RANK_PROCESS, which
# names the process that has taken this rank. Variables that users set are not among them
# (OMPI_MCA_*, PMIX_MCA_*, I_MPI_*, MPICH_*).
_OUTER_RANK = re.compile(
    r"COBRE_RANK_PROCESS$|PMI_|PALS_|HYDI_|MPI_LOCAL|PRTE_LAUNCHED|PMIX_(?!MCA_|PREFIX)"
    r"|OMPI_(COMM_WORLD_|UNIVERSE_|APP_CTX_|NUM_APP_|FIRST_RANKS|FILE_LOC|ARGV|COMMAND|MCA_orte_)"
)
# Variables in which a batch system says on which machines ranks may be started.
_BATCH_JOB = re.compile(r"SLURM_|PBS_|LSB_|PE_HOSTFILE$")
# Variables of a batch system about one process or one srun; all others describe the whole job.
_BATCH_RANK = re.compile(
    r"SLURM_(PROCID|LOCALID|NODEID|STEP|TASK_PID|GTIDS|SRUN|LAUNCH|NTASKS$|NPROCS$)"
)


def without_outer_job(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a local ``mpiexec``, without the variables of an outer job."""
    return {
        name: value
        for name, value in environ.items()
        if not _OUTER_RANK.match(name) and not _BATCH_JOB.match(name)
    }


def of_batch_job(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a batch system about the whole job, for ranks to read."""
    return {
        name: value
        for name, value in environ.items()
        if _BATCH_JOB.match(name) and not _BATCH_RANK.match(name)
    }
