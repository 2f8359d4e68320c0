"""The specification of the ``shm`` backend."""

from cobre_comm.backends.spec import BackendSpec, JobFacts
from cobre_comm.config import ShmConfig


def _rank_variables(job: JobFacts, rank: int) -> dict[str, str]:
    return {
        "COBRE_SHM_NAME": job.shm_name,
        "COBRE_SHM_RANK": str(rank),
        "COBRE_SHM_SIZE": str(job.size),
    }


SHM = BackendSpec(
    name="shm",
    number=1,
    about="processes of one machine, over shared memory",
    module="cobre_comm.backends.shm.backend",
    class_name="ShmBackend",
    config=ShmConfig,
    timeout_variable="COBRE_SHM_TIMEOUT_SECS",
    auto_variables=("COBRE_SHM_NAME",),
    place_variables=("COBRE_SHM_NAME", "COBRE_SHM_RANK", "COBRE_SHM_SIZE"),
    rank_variables=_rank_variables,
)
