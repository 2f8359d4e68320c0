"""Who is measured: a side binds an operation on a slot of buffers to a call without arguments."""

from __future__ import annotations

from functools import partial

import numpy as np

from bench.ranks.work import Slot, contribution, verify


class Ours:
    """Calls on a cobre_comm communicator."""

    in_rank_order = True

    def __init__(self, comm) -> None:
        from cobre_comm import ReduceOp

        self.comm = comm
        self._ops = {"sum": ReduceOp.SUM, "min": ReduceOp.MIN}

    def bind(self, operation: str, slot: Slot | None):
        if slot is None:
            return self.comm.barrier
        if operation == "broadcast":
            return partial(self.comm.broadcast, slot.send, 0)
        if operation == "allgatherv":
            return partial(self.comm.allgatherv, slot.send, slot.recv, slot.counts, slot.displs)
        return partial(self.comm.allreduce, slot.send, slot.recv, self._ops[operation])


class Mpi4py:
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


class Gloo:
    """The same calls on torch.distributed's default group, on tensors that share the slots' memory.

    gloo reduces in place: the copy of ``send`` that makes it the operation of the others is timed.
    """

    in_rank_order = False

    def __init__(self, torch, distributed) -> None:
        self._tensor, self._group = torch.from_numpy, distributed
        self._ops = {"sum": distributed.ReduceOp.SUM, "min": distributed.ReduceOp.MIN}

    def bind(self, operation: str, slot: Slot | None):
        if slot is None:
            return self._group.barrier
        send, recv = self._tensor(slot.send), self._tensor(slot.recv)
        if operation == "broadcast":
            return partial(self._group.broadcast, send, 0)
        if operation == "allgatherv":
            return self._gather(send, recv, slot)
        return partial(self._reduce, send, recv, self._ops[operation])

    def _gather(self, send, recv, slot: Slot):
        if len(set(slot.counts.tolist())) > 1:
            raise ValueError("gloo gathers blocks of one length only")
        newer = getattr(self._group, "all_gather_single", None)
        return partial(newer or self._group.all_gather_into_tensor, recv, send)

    def _reduce(self, send, recv, op) -> None:
        recv.copy_(send)
        self._group.all_reduce(recv, op)


class Memcpy:
    """What an operation must copy at least, from this rank's own memory: no rank waits for another.

    A rank of an allgatherv fills each block of ``recv``, always from its own ``send``: reading
    others' blocks instead takes longer, so this is a limit. In a broadcast all but the root copy.
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


class Fresh:
    """A side whose data are written anew before each call, as a program's are.

    Otherwise a library that reads a peer's memory finds there, in its own caches, what it has read
    the last time. The writing is in the times of all sides.
    """

    def __init__(self, side, rank: int) -> None:
        self._side, self._rank = side, rank
        self.in_rank_order = side.in_rank_order

    def bind(self, operation: str, slot: Slot | None):
        call = self._side.bind(operation, slot)
        if slot is None or (operation == "broadcast" and self._rank != 0):
            return call
        send, data = slot.send, slot.send.copy()

        def write_and_send() -> None:
            send[:] = data
            call()

        return write_and_send
