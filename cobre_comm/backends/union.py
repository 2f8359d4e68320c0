"""The union type of the backends, for annotations."""

from cobre_comm.backends.local import LocalBackend
from cobre_comm.backends.mpi.backend import MpiBackend
from cobre_comm.backends.shm import ShmBackend
from cobre_comm.backends.tcp import TcpBackend

CommBackend = LocalBackend | ShmBackend | TcpBackend | MpiBackend
