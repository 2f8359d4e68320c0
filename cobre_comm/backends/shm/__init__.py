"""R processes on one machine, over POSIX shared memory."""

from cobre_comm.backends.shm.backend import ShmBackend

__all__ = ["ShmBackend"]
