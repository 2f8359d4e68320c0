"""The ranks of a job: their number, the time of the slowest rank, the sides that ranks measure."""

from __future__ import annotations

import os
import secrets

from bench.plan import BACKENDS, FLAT, IN_REGION, LEADERS, MEMCPY, MEMCPY_ONCE, OVER_SHM
from bench.ranks.sides import Gloo, InRegion, Memcpy, MemcpyOnce, Mpi4py, Ours

LOOPBACK = "127.0.0.1"
# Variables: one has the address at which ranks meet over tcp, the other the node of each rank.
COORDINATOR, NODES = "COBRE_BENCH_COORDINATOR", "COBRE_BENCH_NODES"
# Sides of ours in which each rank is a node: "ring" sends everything around the ring, "star" sends
# everything behind headers.
EAGER_BYTES = {FLAT: None, "ring": 0, "star": 2**31}


class World:
    """A job as measuring code sees it; MpiWorld and GlooWorld make the sides, and close the job."""

    rank: int
    size: int

    def __init__(self) -> None:
        self._sides: dict = {}

    def close_sides(self) -> None:
        """Close what the sides have; a side is made anew when it is asked for again.

        A communicator remembers the fastest way of large calls. So each measurement has
        communicators of its own, as a program has that makes such calls alone.
        """
        self._sides.clear()

    def side(self, name: str):
        """Return a side by its name; a side is made when it is first asked for."""
        if name not in self._sides:
            self._sides[name] = self._make_side(name)
        return self._sides[name]


class MpiWorld(World):
    """Ranks that an MPI library has started.

    mpiexec binds no rank to a core, so our backends count the cores of the machine, and wait as
    they do for every user.
    """

    def __init__(self) -> None:
        from mpi4py import MPI

        super().__init__()
        self.mpi, self.comm = MPI, MPI.COMM_WORLD
        self.rank, self.size = self.comm.rank, self.comm.size
        self._ours: list = []

    def slowest(self, seconds: float) -> float:
        return self.comm.allreduce(seconds, self.mpi.MAX)

    def _make_side(self, name: str):
        if name in BACKENDS:
            return Ours(self.communicator(name))
        if name == OVER_SHM:
            return self.side("shm")
        if name in (IN_REGION, MEMCPY_ONCE):
            made = InRegion if name == IN_REGION else MemcpyOnce
            return made(self.side("shm").comm)
        if name in EAGER_BYTES:
            return Ours(self.communicator("tcp", share=False, eager_bytes=EAGER_BYTES[name]))
        if name in LEADERS:
            places = tuple(map(int, os.environ[NODES].split(",")))
            return Ours(self.communicator("tcp", leaders=LEADERS[name], pretend_nodes=places))
        return Memcpy() if name == MEMCPY else Mpi4py(self.mpi)

    def communicator(self, backend: str, **tcp):
        """Return a communicator of ours over these ranks; ``tcp`` has fields of ``TcpConfig``."""
        from cobre_comm import BackendKind, ShmConfig, create_communicator

        if backend == "mpi":
            made = create_communicator(BackendKind.MPI)
        elif backend == "tcp":
            made = create_communicator(self._tcp_config(tcp))
        else:
            name = self.comm.bcast(f"/cobre-bench-{os.getpid()}-{secrets.token_hex(4)}")
            made = create_communicator(ShmConfig(name=name, rank=self.rank, size=self.size))
        self._ours.append(made)
        return made

    def _tcp_config(self, fields: dict):
        from cobre_comm import TcpConfig
        from cobre_comm.processes.port import ReservedPort

        address = os.environ.get(COORDINATOR, LOOPBACK)
        found = None
        if self.rank == 0:
            reserved = ReservedPort(address)
            self._ours.append(reserved)
            found = reserved.port, secrets.token_hex(16)
        port, token = self.comm.bcast(found)
        return TcpConfig(
            rank=self.rank, size=self.size, coordinator=address, bind_addr=address,
            port=port, token=token, **fields,
        )  # fmt: skip

    def close_sides(self) -> None:
        super().close_sides()
        for comm in self._ours:
            comm.close()
        self._ours.clear()

    def close(self) -> None:
        self.close_sides()


class GlooWorld(World):
    """Ranks that have met by torch's own variables."""

    def __init__(self) -> None:
        import torch
        import torch.distributed as group

        super().__init__()
        torch.set_num_threads(1)
        group.init_process_group("gloo")
        self._torch, self._group = torch, group
        self._number = torch.zeros(1, dtype=torch.float64)
        self.rank, self.size = group.get_rank(), group.get_world_size()

    def slowest(self, seconds: float) -> float:
        self._number[0] = seconds
        self._group.all_reduce(self._number, self._group.ReduceOp.MAX)
        return float(self._number[0])

    def _make_side(self, name: str):
        return Gloo(self._torch, self._group)

    def close(self) -> None:
        self._group.barrier()
        self._group.destroy_process_group()
