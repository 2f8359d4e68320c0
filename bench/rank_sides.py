"""Who takes part in a job of ranks: our backends, the library, and plain copies."""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np
from mpi_sides import our_communicator
from tcp_cases import Slot, contribution, verify
from tcp_sides import OpenMpi as Mpi4py
from tcp_sides import Ours
from tcp_sides import our_communicator as our_tcp_communicator

LOOPBACK = "127.0.0.1"


class Memcpy:
    """What an operation must copy at least, from this rank's own memory: no rank waits for another.

    A rank of an allgatherv fills the place of each block, always from its own one: reading others'
    blocks instead takes longer, so this is a limit. In a broadcast all but the root copy.
    """

    in_rank_order = True

    def __init__(self, rank: int) -> None:
        self._rank = rank

    def bind(self, operation: str, slot: Slot | None):
        if operation == "broadcast":
            if self._rank == 0:
                return lambda: None
            source = contribution(slot.key, 0, int(slot.counts[0]), slot.send.dtype.type)
            return partial(np.copyto, slot.send, source)
        if operation != "allgatherv":
            raise ValueError(f"no least number of copies is known for {operation}")
        blocks = np.split(slot.recv, slot.displs[1:])

        def copy_all() -> None:
            for block in blocks:
                np.copyto(block, slot.send)

        return copy_all

    def verify(self, slot: Slot) -> None:
        if slot.operation == "broadcast":
            verify(slot, self.in_rank_order)
        elif not np.array_equal(slot.recv, np.tile(slot.send, len(slot.counts))):
            raise AssertionError(f"copies of {slot.send.nbytes} bytes: not what was copied")


class MpiWorld:
    """The ranks that an MPI library started, and their sides, each made when it is first needed.

    Our communicator waits as it does for every user: mpiexec is told to bind no rank to a core, so
    the cores that our backend counts are the machine's.
    """

    def __init__(self) -> None:
        from mpi4py import MPI
        from mpi_start import library_name

        self._mpi, self._world = MPI, MPI.COMM_WORLD
        self.rank, self.size = self._world.rank, self._world.size
        self.version = library_name(MPI)
        self._comms = []

    def slowest(self, value: float) -> float:
        return self._world.allreduce(value, self._mpi.MAX)

    def slowest_of_each(self, values: np.ndarray) -> np.ndarray:
        worst = np.empty_like(values)
        self._world.Allreduce(values, worst, self._mpi.MAX)
        return worst

    def side(self, name: str):
        return getattr(self, name)

    @cached_property
    def peer(self) -> Mpi4py:
        return Mpi4py(self._mpi)

    @cached_property
    def memcpy(self) -> Memcpy:
        return Memcpy(self.rank)

    @cached_property
    def shm(self) -> Ours:
        return self._ours(our_communicator("shm", self._world))

    @cached_property
    def mpi(self) -> Ours:
        return self._ours(our_communicator("mpi", self._world))

    @cached_property
    def tcp(self) -> Ours:
        return self._ours(our_tcp_communicator(self._world, LOOPBACK))

    def _ours(self, comm) -> Ours:
        self._comms.append(comm)
        return Ours(comm)

    def close(self) -> None:
        for comm in self._comms:
            comm.close()

    def abort(self) -> None:
        self._world.Abort(1)


class GlooWorld:
    """Ranks that found each other by torch's own variables."""

    def __init__(self) -> None:
        import torch
        from tcp_gloo import Gloo, start_group

        self._group, self.slowest = start_group()
        self.rank, self.size = self._group.get_rank(), self._group.get_world_size()
        self.version = f"gloo of torch {torch.__version__}"
        self._torch, self._side = torch, Gloo(torch, self._group)

    def slowest_of_each(self, values: np.ndarray) -> np.ndarray:
        worst = values.copy()
        self._group.all_reduce(self._torch.from_numpy(worst), self._group.ReduceOp.MAX)
        return worst

    def side(self, name: str):
        return self._side

    def close(self) -> None:
        self._group.barrier()
        self._group.destroy_process_group()

    def abort(self) -> None:
        raise SystemExit(1)
