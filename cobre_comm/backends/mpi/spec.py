"""What the ``mpi`` backend is."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cobre_comm.backends.spec import BackendSpec, Job
from cobre_comm.config import MpiConfig

if TYPE_CHECKING:
    from cobre_kernels.machine.kernel import Kernel

    from cobre_comm.communicator import Communicator

# What a launcher of MPI programs sets.
LAUNCH_VARIABLES = (
    "PMI_RANK",
    "PMI_SIZE",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "MPI_LOCALRANKID",
    "SLURM_PROCID",
)


def _create(config: MpiConfig | None) -> Communicator:
    from cobre_comm.backends.mpi.backend import MpiBackend

    return MpiBackend(config=config)


def _is_available() -> bool:
    from cobre_comm.backends.mpi.library import is_importable

    return os.name == "posix" and is_importable()


def _detect(environ: Mapping[str, str]) -> str:
    found = [variable for variable in LAUNCH_VARIABLES if variable in environ]
    return found[0] if found else ""


def _kernels() -> Sequence[Kernel]:
    from cobre_comm.backends.mpi.backend import kernels_to_compile

    return kernels_to_compile()


def _rank_variables(job: Job, rank: int) -> dict[str, str]:
    return {}  # mpiexec tells a rank which one it is


MPI = BackendSpec(
    name="mpi",
    number=3,
    about="processes that MPI started",
    timeout_variable="COBRE_MPI_TIMEOUT_SECS",
    config=MpiConfig,
    create=_create,
    is_available=_is_available,
    detect=_detect,
    kernels=_kernels,
    rank_variables=_rank_variables,
    place_variables=LAUNCH_VARIABLES,
)
