"""Read from the environment how many ranks the launcher of this process has started.

Slurm sets ``SLURM_NTASKS`` for every process of an allocation, but only the tasks of a step are
ranks. A task has ``SLURM_PROCID`` and ``SLURM_STEP_NUM_TASKS``. Two other processes work alone:

- the shell of ``salloc`` has no ``SLURM_PROCID``, or is the one task of an interactive step;
- the script of ``sbatch`` has ``SLURM_PROCID=0`` and no step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

# Variables by which a launcher tells how many ranks it has started. A variable counts only if the
# other variables in its row are set too. The first row that counts decides: it is of the launcher
# that started this process itself.
_SIZE_VARIABLES: dict[str, tuple[str, ...]] = {
    "PMI_SIZE": (),
    "OMPI_COMM_WORLD_SIZE": (),
    "MPI_LOCALNRANKS": (),
    "WORLD_SIZE": ("RANK", "MASTER_ADDR"),  # of torchrun
    "SLURM_STEP_NUM_TASKS": ("SLURM_PROCID",),
    "SLURM_NTASKS": ("SLURM_PROCID",),
}
_SRUN = (
    "start it by `srun`, which tells each task its step and nodes (SLURM_STEP_ID, "
    "SLURM_STEP_NODELIST), or by `cobre-comm run -n {size} script.py`"
)
_HOW_TO_START = {
    "WORLD_SIZE": "set MASTER_PORT too, as torchrun does",
    "SLURM_STEP_NUM_TASKS": _SRUN,
    "SLURM_NTASKS": _SRUN,
}
_HOW_TO_START_MPI = "install mpi4py and the MPI whose mpiexec starts the ranks"


class Announced(NamedTuple):
    """The number of ranks that a launcher has announced."""

    size: int
    variable: str  # the variable of the environment that gives the number

    def __str__(self) -> str:
        return f"{self.variable}={self.size} announces {self.size} ranks"

    @property
    def remedy(self) -> str:
        """Return a sentence: how to start the processes as one job, or to let each work alone."""
        how = _HOW_TO_START.get(self.variable, _HOW_TO_START_MPI)
        return f"{how.format(size=self.size)}; or set COBRE_COMM_BACKEND=local if each works alone"


def announced(environ: Mapping[str, str]) -> Announced:
    """Return how many ranks the nearest launcher has started; 1 if no launcher says so."""
    for variable, others in _SIZE_VARIABLES.items():
        size = environ.get(variable, "")
        if not size.isdigit() or not all(name in environ for name in others):
            continue
        if variable == "SLURM_NTASKS" and _is_batch_script(environ):
            continue
        return Announced(int(size), variable)
    return Announced(1, "")


def _is_batch_script(environ: Mapping[str, str]) -> bool:
    """Whether this process belongs to the script of ``sbatch`` itself, not to a step of the job."""
    is_first = environ.get("SLURM_PROCID") == "0"
    return is_first and "SLURM_JOB_ID" in environ and "SLURM_STEP_NUM_TASKS" not in environ
