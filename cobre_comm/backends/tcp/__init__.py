"""R processes on one machine or many, over sockets; rank 0 coordinates."""

from cobre_comm.backends.tcp.backend import TcpBackend

__all__ = ["TcpBackend"]
