"""Sides: a side turns an operation and its buffers into a call without arguments."""

from __future__ import annotations

from functools import partial

import numpy as np

from bench.ranks.work import Arrays

LEAST_REGION_BYTES = 4096


class Private:
    """A side whose ranks receive into memory of their own."""

    def new_recv(self, count: int, dtype: type) -> np.ndarray:
        """Return memory for results, which has no result in it yet."""
        return np.full(count, 255, dtype)

    def release(self) -> None:
        """Release the memory for results."""


class Ours(Private):
    """Calls on a cobre_comm communicator."""

    in_rank_order = True

    def __init__(self, comm) -> None:
        from cobre_comm import ReduceOp

        self.comm = comm
        self._ops = {"sum": ReduceOp.SUM, "min": ReduceOp.MIN}

    def call_of(self, operation: str, arrays: Arrays | None):
        if arrays is None:
            return self.comm.barrier
        if operation == "broadcast":
            return partial(self.comm.broadcast, arrays.send, 0)
        if operation == "allgatherv":
            return partial(
                self.comm.allgatherv, arrays.send, arrays.recv, arrays.counts, arrays.displs
            )
        return partial(self.comm.allreduce, arrays.send, arrays.recv, self._ops[operation])


class InRegion(Ours):
    """The calls of ``Ours``, but all ranks of a node receive a large result into one region."""

    def __init__(self, comm) -> None:
        super().__init__(comm)
        self._regions: list = []

    def new_recv(self, count: int, dtype: type) -> np.ndarray:
        if count * np.dtype(dtype).itemsize < LEAST_REGION_BYTES:
            return super().new_recv(count, dtype)
        self._regions.append(self.comm.create_shared_region(count, dtype))
        return self._regions[-1].part(0, count)

    def release(self) -> None:
        for region in self._regions:
            region.close()
        self._regions.clear()


class InPlace(InRegion):
    """Calls on data that is in regions, so that leaders move bytes from region to region."""

    def call_of(self, operation: str, arrays: Arrays | None):
        if operation == "allgatherv" and arrays:
            arrays.send = self._placed(arrays.send, own_block(arrays, self.comm.rank), True)
        if operation == "broadcast" and arrays:
            region = self.new_recv(arrays.send.size, arrays.send.dtype.type)
            arrays.send = self._placed(arrays.send, region, self.comm.rank == 0)
        return super().call_of(operation, arrays)

    def _placed(self, data: np.ndarray, place: np.ndarray, has_data: bool) -> np.ndarray:
        if has_data:  # others see the data too, because ranks of a node share the region
            place[:] = data
        return place


class Mpi4py(Private):
    """Calls on mpi4py's COMM_WORLD."""

    in_rank_order = False

    def __init__(self, mpi) -> None:
        self._mpi, self._world = mpi, mpi.COMM_WORLD
        self._ops = {"sum": mpi.SUM, "min": mpi.MIN}

    def call_of(self, operation: str, arrays: Arrays | None):
        if arrays is None:
            return self._world.Barrier
        if operation == "broadcast":
            return partial(self._world.Bcast, arrays.send, 0)
        if operation == "allgatherv":
            unit = self._mpi.BYTE if arrays.send.itemsize == 1 else self._mpi.DOUBLE
            gathered = [arrays.recv, arrays.counts, arrays.displs, unit]
            return partial(self._world.Allgatherv, arrays.send, gathered)
        return partial(self._world.Allreduce, arrays.send, arrays.recv, self._ops[operation])


class Gloo(Private):
    """Calls on torch.distributed's default group, on tensors over the arrays' memory.

    gloo reduces in place, and the other sides keep ``send``. So gloo's time includes a copy of
    ``send``.
    """

    in_rank_order = False

    def __init__(self, torch, distributed) -> None:
        self._tensor, self._group = torch.from_numpy, distributed
        self._ops = {"sum": distributed.ReduceOp.SUM, "min": distributed.ReduceOp.MIN}

    def call_of(self, operation: str, arrays: Arrays | None):
        if arrays is None:
            return self._group.barrier
        send, recv = self._tensor(arrays.send), self._tensor(arrays.recv)
        if operation == "broadcast":
            return partial(self._group.broadcast, send, 0)
        if operation == "allgatherv":
            return self._gather(send, recv, arrays)
        return partial(self._reduce, send, recv, self._ops[operation])

    def _gather(self, send, recv, arrays: Arrays):
        if len(set(arrays.counts.tolist())) > 1:
            raise ValueError("gloo gathers blocks of one length only")
        newer = getattr(self._group, "all_gather_single", None)
        return partial(newer or self._group.all_gather_into_tensor, recv, send)

    def _reduce(self, send, recv, op) -> None:
        recv.copy_(send)
        self._group.all_reduce(recv, op)


class Memcpy(Private):
    """The least copies of an allgatherv, from this rank's own memory, without waits.

    A rank fills each block of ``recv``, always from its own ``send``. To read the blocks of other
    ranks would take longer, so the time of these copies is a limit.
    """

    def call_of(self, operation: str, arrays: Arrays):
        blocks = np.split(arrays.recv, arrays.displs[1:])

        def copy_all() -> None:
            for block in blocks:
                np.copyto(block, arrays.send)

        return copy_all

    def verify(self, arrays: Arrays) -> None:
        if not np.array_equal(arrays.recv, np.tile(arrays.send, len(arrays.counts))):
            raise AssertionError(f"copies of {arrays.send.nbytes} bytes: not what was copied")


class MemcpyOnce(InRegion):
    """The least copies of an allgatherv into a region: each rank copies its own block."""

    def call_of(self, operation: str, arrays: Arrays):
        return partial(np.copyto, own_block(arrays, self.comm.rank), arrays.send)

    def verify(self, arrays: Arrays) -> None:
        if not np.array_equal(own_block(arrays, self.comm.rank), arrays.send):
            raise AssertionError(f"a copy of {arrays.send.nbytes} bytes: not what was copied")


def own_block(arrays: Arrays, rank: int) -> np.ndarray:
    start = int(arrays.displs[rank])
    return arrays.recv[start : start + int(arrays.counts[rank])]
