"""The specification of the ``shm`` backend."""

from cobre_comm.backends.spec import BackendSpec
from cobre_comm.config import ShmConfig

SHM = BackendSpec(
    name="shm",
    number=1,
    config=ShmConfig,
    timeout_variable="COBRE_SHM_TIMEOUT_SECS",
    auto_variables=("COBRE_SHM_NAME",),
    rank_variables={
        "COBRE_SHM_NAME": lambda job, rank: job.shm_name,
        "COBRE_SHM_RANK": lambda job, rank: str(rank),
        "COBRE_SHM_SIZE": lambda job, rank: str(job.size),
    },
)
