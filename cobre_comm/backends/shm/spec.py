"""What the ``shm`` backend is."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cobre_comm.backends.spec import BackendSpec, Job
from cobre_comm.config import ShmConfig

if TYPE_CHECKING:
    from cobre_kernels.machine.kernel import Kernel

    from cobre_comm.communicator import Communicator


def _create(config: ShmConfig | None) -> Communicator:
    from cobre_comm.backends.shm.backend import ShmBackend

    return ShmBackend(ShmConfig.from_env() if config is None else config)


def _is_available() -> bool:
    return os.name == "posix"


def _detect(environ: Mapping[str, str]) -> str:
    return "COBRE_SHM_NAME" if environ.get("COBRE_SHM_NAME") else ""


def _kernels() -> Sequence[Kernel]:
    from cobre_comm.backends.shm.backend import KERNELS

    return list(KERNELS)


def _rank_variables(job: Job, rank: int) -> dict[str, str]:
    return {
        "COBRE_SHM_NAME": job.shm_name,
        "COBRE_SHM_RANK": str(rank),
        "COBRE_SHM_SIZE": str(job.size),
    }


SHM = BackendSpec(
    name="shm",
    number=1,
    about="processes of one machine, over shared memory",
    timeout_variable="COBRE_SHM_TIMEOUT_SECS",
    config=ShmConfig,
    create=_create,
    is_available=_is_available,
    detect=_detect,
    kernels=_kernels,
    rank_variables=_rank_variables,
    place_variables=("COBRE_SHM_NAME", "COBRE_SHM_RANK", "COBRE_SHM_SIZE"),
)
