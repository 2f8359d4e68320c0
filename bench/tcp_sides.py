"""Our calls and Open MPI's, as the tcp benchmarks bind them to buffers."""

from __future__ import annotations

from functools import partial

from tcp_cases import Slot


class Ours:
    """Calls on a cobre_comm communicator."""

    in_rank_order = True

    def __init__(self, comm) -> None:
        from cobre_comm import ReduceOp

        self._comm = comm
        self._ops = {"sum": ReduceOp.SUM, "min": ReduceOp.MIN}

    def bind(self, operation: str, slot: Slot | None):
        if slot is None:
            return self._comm.barrier
        if operation == "broadcast":
            return partial(self._comm.broadcast, slot.send, 0)
        if operation == "allgatherv":
            return partial(self._comm.allgatherv, slot.send, slot.recv, slot.counts, slot.displs)
        return partial(self._comm.allreduce, slot.send, slot.recv, self._ops[operation])


class OpenMpi:
    """The same calls on mpi4py's COMM_WORLD."""

    in_rank_order = False

    def __init__(self, mpi) -> None:
        self._mpi, self._world = mpi, mpi.COMM_WORLD
        self._ops = {"sum": mpi.SUM, "min": mpi.MIN}

    def bind(self, operation: str, slot: Slot | None):
        if slot is None:
            return self._world.Barrier
        if operation == "broadcast":
            return partial(self._world.Bcast, slot.send, 0)
        if operation == "allgatherv":
            unit = self._mpi.BYTE if slot.send.itemsize == 1 else self._mpi.DOUBLE
            gathered = [slot.recv, slot.counts, slot.displs, unit]
            return partial(self._world.Allgatherv, slot.send, gathered)
        return partial(self._world.Allreduce, slot.send, slot.recv, self._ops[operation])
