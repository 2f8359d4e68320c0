"""The union type of the backends, for annotations."""

from cobre_comm.backends.local.backend import LocalBackend
from cobre_comm.backends.mpi.backend import MpiBackend
from cobre_comm.backends.shm.backend import ShmBackend
from cobre_comm.backends.tcp.backend import TcpBackend

CommBackend = LocalBackend | ShmBackend | TcpBackend | MpiBackend
