"""The specification of the ``mpi`` backend."""

from cobre_comm.backends.mpi import library
from cobre_comm.backends.spec import BackendSpec, why_not_posix
from cobre_comm.config import MpiConfig

# Launchers of MPI programs set these variables.
LAUNCH_VARIABLES = (
    "PMI_RANK",
    "PMI_SIZE",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "MPI_LOCALRANKID",
    "SLURM_PROCID",
)

MPI = BackendSpec(
    name="mpi",
    number=3,
    config=MpiConfig,
    timeout_variable="COBRE_MPI_TIMEOUT_SECS",
    auto_variables=LAUNCH_VARIABLES,
    why_not=lambda: why_not_posix() or library.why_not(),
)
