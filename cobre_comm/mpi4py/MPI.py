"""The names of ``mpi4py.MPI`` that programs of collectives use.

Reductions are folded in rank order, and an error names the rank at fault.
"""

from __future__ import annotations

import functools
import platform
import time
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

import cobre_comm
from cobre_comm import CommError, Communicator, InvalidCommunicator, objects
from cobre_comm.mpi4py import windows
from cobre_comm.mpi4py.missing import NotHere, lacking
from cobre_comm.mpi4py.specifications import (
    DATATYPES,
    OPS,
    PICKLE,
    TYPEDICT,
    Datatype,
    Op,
    Partial,
    blocks,
    check_fills,
    elements,
    fill,
    kind_of,
    usual_float_mode,
    whole,
)

PROC_NULL, ROOT, UNDEFINED, COMM_TYPE_SHARED, BOTTOM = -1, -3, -32766, 0, 0
THREAD_SINGLE, THREAD_FUNNELED, THREAD_SERIALIZED, THREAD_MULTIPLE = range(4)
# How much of each rank's contribution is folded at a time. Because this is a power of 2, pairs and
# quadruples of numbers stay together.
PIECE_BYTES = 2**20
IN_PLACE = INFO_NULL = OP_NULL = None  # IN_PLACE is None, because mpi4py accepts None for it
DATATYPE_NULL = Datatype("DATATYPE_NULL", "V")
Win, LOCK_EXCLUSIVE, LOCK_SHARED = windows.Win, windows.LOCK_EXCLUSIVE, windows.LOCK_SHARED
Exception = CommError
SUM, pickle, _typedict = OPS["SUM"], PICKLE, TYPEDICT
globals().update(OPS | DATATYPES)


class Comm(Partial):
    """A communicator of cobre_comm, with the names of mpi4py."""

    def __init__(self, comm: Comm | Communicator | None = None, predefined: str = "") -> None:
        self._of: Communicator | None = comm._of if isinstance(comm, Comm) else comm
        self._predefined, self.name = predefined, predefined and f"MPI_{predefined}"

    @property
    def _comm(self) -> Communicator:
        if self._of is None:
            raise InvalidCommunicator("this is COMM_NULL, or a communicator that was freed")
        return self._of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Comm) and self._of is other._of

    def __hash__(self) -> int:
        return id(self._of)

    def __reduce__(self) -> str:
        if not self._predefined:
            said = "cannot be pickled or copied, except COMM_WORLD and COMM_SELF"
            raise NotHere("a communicator", said)
        return self._predefined

    def __bool__(self) -> bool:
        return self._of is not None

    def Get_rank(self) -> int:
        return self._comm.rank

    def Get_size(self) -> int:
        return self._comm.size

    def Get_name(self) -> str:
        return self.name

    rank, size = property(Get_rank), property(Get_size)

    def Split(self, color: int = 0, key: int = 0) -> Comm:
        color = whole(color)
        return Intracomm(self._comm.split(None if color == UNDEFINED else color, whole(key)))

    def Split_type(self, split_type: int, key: int = 0, info: Any = None) -> Comm:
        if whole(split_type) not in (COMM_TYPE_SHARED, UNDEFINED):
            raise NotHere("Comm.Split_type", "takes COMM_TYPE_SHARED alone here")
        return Intracomm(self._comm.split_local()).Split(split_type, key)

    def Dup(self, info: Any = None) -> Comm:
        with self._serves("Dup"):
            return self.Split()

    Clone = Dup

    def Free(self) -> None:
        windows.let_go(self._comm)
        self._of = None

    def Abort(self, errorcode: int = 0) -> None:
        self._comm.abort(min(max(1, whole(errorcode)), 255))  # 0 would mean success

    def Barrier(self) -> None:
        self._comm.barrier()

    def Bcast(self, buf: Any, root: int = 0) -> None:
        self._comm.broadcast(elements(buf), whole(root))

    def Gatherv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        root = whole(root)
        root_parts = blocks(recvbuf, self.size) if self.rank == root else (None, None, None)
        recv, counts, displs = root_parts
        self._comm.gatherv(self._sent(sendbuf, *root_parts), recv, counts, displs, root)

    def Allgatherv(self, sendbuf: Any, recvbuf: Any) -> None:
        parts = blocks(recvbuf, self.size)
        self._comm.allgatherv(self._sent(sendbuf, *parts), *parts)

    def Scatterv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Broadcast all blocks; each rank keeps its own block."""
        with self._serves("Scatter"):
            self._scatter(sendbuf, recvbuf, whole(root))

    def _scatter(self, sendbuf: Any, recvbuf: Any, root: int) -> None:
        packed, table = np.empty(0), np.zeros((2, self.size), dtype=np.int64)
        if self.rank == root:
            send, counts, displs = blocks(sendbuf, self.size)
            packed = np.concatenate([send[d : d + n] for d, n in zip(displs, counts, strict=True)])
            table[:] = counts, np.cumsum(counts) - counts
        self._comm.broadcast(table, root)
        recv = packed if recvbuf is IN_PLACE else elements(recvbuf).reshape(-1)
        if self.rank != root:
            packed = np.empty(table[0].sum(), dtype=recv.dtype)
        self._comm.broadcast(packed, root)
        if recvbuf is not IN_PLACE:
            count, displ = table[:, self.rank]
            fill(recv[:count], packed[displ : displ + count])

    def Alltoallv(self, sendbuf: Any, recvbuf: Any) -> None:
        """Gather the blocks of each rank in turn."""
        recv, counts, displs = blocks(recvbuf, self.size)
        in_place = [recv.copy() if sendbuf is None else None, counts, displs, None]
        send, *parts = blocks(in_place if sendbuf is None else sendbuf, self.size)
        sent = [send[d : d + n] for n, d in zip(*parts, strict=True)]
        check_fills(recv[displs[self.rank] :][: counts[self.rank]], sent[self.rank])
        with self._serves("Alltoall"):
            for root, block in enumerate(sent):
                room: Any = (recv, counts, displs) if self.rank == root else (None, None, None)
                self._comm.gatherv(block, room[0], room[1], room[2], root)

    Gather, Allgather, Scatter, Alltoall = Gatherv, Allgatherv, Scatterv, Alltoallv

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        recv = elements(recvbuf)
        send = recv if sendbuf is IN_PLACE else elements(sendbuf)
        ours = op.ours(send.dtype)
        if not send.size:
            with self._serves("Allreduce", op):
                self._comm.barrier()
        elif ours is None:
            with self._serves("Allreduce", op):
                self._fold(sendbuf, recvbuf, op, self.size)
        else:
            self._comm.allreduce(send, recv, ours)

    def Reduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM, root: int = 0) -> None:
        with self._serves("Reduce", op):
            # Raises if the root is no rank, or not the same on all ranks.
            self._comm.broadcast(np.empty(0), whole(root))
            if self.rank != whole(root):
                recvbuf = [np.empty_like(elements(sendbuf)), kind_of(sendbuf)]
            self.Allreduce(sendbuf, recvbuf, op)

    def Reduce_scatter(
        self, sendbuf: Any, recvbuf: Any, recvcounts: Any = None, op: Op = SUM
    ) -> None:
        recv = elements(recvbuf).reshape(-1)
        spec = recvbuf if sendbuf is None else sendbuf
        total = elements(spec).reshape(-1).copy()
        with self._serves("Reduce_scatter", op):
            self.Allreduce(IN_PLACE, [total, kind_of(spec)], op)
            counts = self.allgather(recv.size) if recvcounts is None else recvcounts
        if sum(counts) != total.size:
            raise ValueError(f"blocks of {counts} elements do not fill a buffer of {total.size}")
        count, begin = counts[self.rank], sum(counts[: self.rank])
        fill(recv[:count], total[begin : begin + count])

    def Reduce_scatter_block(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        size = elements(recvbuf if sendbuf is None else sendbuf).size // self.size
        self.Reduce_scatter(sendbuf, recvbuf, [size] * self.size, op)

    def Scan(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        with self._serves("Scan", op):
            self._fold(sendbuf, recvbuf, op, self.rank + 1)

    def Exscan(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        with self._serves("Exscan", op):
            self._fold(sendbuf, recvbuf, op, self.rank)

    def _fold(self, sendbuf: Any, recvbuf: Any, op: Op, ranks: int) -> None:
        """Fold the elements of the first ranks in pieces, so that few are in memory at a time."""
        recv, kind = elements(recvbuf).reshape(-1), kind_of(recvbuf)
        send = recv if sendbuf is IN_PLACE else elements(sendbuf).reshape(-1)
        if ranks:
            check_fills(recv, send)
        count = max(1, PIECE_BYTES // send.itemsize)
        if send.size > count:  # a rank with fewer makes another call, and the ranks disagree
            sizes = self._everyone(np.array([send.size]))[:, 0].tolist()
            if min(sizes) != max(sizes):
                raise ValueError(f"the ranks reduce different numbers of elements: {sizes}")
        for begin in range(0, max(send.size, 1), count):
            everyone = self._everyone(send[begin : begin + count])
            if ranks:
                fill(recv[begin : begin + count], op.fold(everyone[:ranks], kind))

    def _sent(self, send: Any, recv: Any, counts: Any, displs: Any) -> Any:
        if send is IN_PLACE:
            return recv[displs[self.rank] :][: counts[self.rank]]
        return elements(send)

    def _serves(self, call: str, op: Any = None) -> AbstractContextManager[None]:
        """Make ranks compare their calls of mpi4py: several calls use the same collectives."""
        comm: Any = self._comm
        operation = f"({getattr(op, 'name', 'MPI_OP_USER').removeprefix('MPI_')})" if op else ""
        serving: AbstractContextManager[None] = comm._serving(f"mpi4py.{call}{operation}")
        return serving

    def _everyone(self, send: Any) -> Any:
        """Return the elements of all ranks, shape (size, n)."""
        everyone = np.empty((self.size, send.size), dtype=send.dtype)
        self._comm.allgather(send, everyone)
        return everyone

    barrier = Barrier

    def bcast(self, obj: Any, root: int = 0) -> Any:
        root = whole(root)
        with self._serves("bcast"):
            sent = pickle.sent(obj) if self.rank == root else None
            got = objects.broadcast(self._comm, sent, root)
        return pickle.loads(pickle.dumps(obj)) if self.rank == root else got  # a copy, as in mpi4py

    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        with self._serves("gather"):
            return objects.gather(self._comm, pickle.sent(sendobj), whole(root))

    def allgather(self, sendobj: Any) -> list[Any]:
        with self._serves("allgather"):
            return objects.allgather(self._comm, pickle.sent(sendobj))

    def scatter(self, sendobj: Any, root: int = 0) -> Any:
        if self.rank == whole(root) and len(sendobj := list(sendobj)) != self.size:
            raise ValueError(f"scatter: expecting {self.size} items, got {len(sendobj)}")
        with self._serves("scatter"):
            return self.bcast(sendobj, root)[self.rank]

    def alltoall(self, sendobj: Any) -> list[Any]:
        with self._serves("alltoall"):
            return [row[self.rank] for row in self.allgather(list(sendobj))]

    def reduce(self, sendobj: Any, op: Op = SUM, root: int = 0) -> Any:
        with self._serves("reduce", op):
            everyone = self.gather(sendobj, root)
        return _folded(op, everyone)

    def allreduce(self, sendobj: Any, op: Op = SUM) -> Any:
        return self._fold_objects("allreduce", sendobj, op, self.size)

    def scan(self, sendobj: Any, op: Op = SUM) -> Any:
        return self._fold_objects("scan", sendobj, op, self.rank + 1)

    def exscan(self, sendobj: Any, op: Op = SUM) -> Any:
        return self._fold_objects("exscan", sendobj, op, self.rank)

    def _fold_objects(self, call: str, sendobj: Any, op: Op, ranks: int) -> Any:
        """Fold the objects of the first ranks as they arrive; all ranks receive all objects."""
        folded = None
        with self._serves(call, op):
            for rank, received in objects.in_turn(self._comm, pickle.sent(sendobj)):
                if rank < ranks:
                    folded = received if rank == 0 else _folded(op, [folded, received])
        return folded


class Intracomm(Comm):
    """A communicator of one group of ranks; this package has no communicators of two groups."""


COMM_NULL = Comm(predefined="COMM_NULL")
VERSION = cobre_comm.__version__


def _folded(op: Any, values: list[Any] | None) -> Any:
    with usual_float_mode():
        return functools.reduce(op, values) if values else None


def Alloc_mem(size: int, info: Any = None) -> memoryview:
    return np.empty(size, dtype=np.uint8).data


def _always(value: Any) -> Any:
    return lambda *_: value


# A communicator is made when a program first asks for it, and closed when the process ends.
Init = Finalize = Free_mem = _always(None)
Init_thread = Query_thread = _always(THREAD_SERIALIZED)
Is_initialized, Is_finalized = _always(True), _always(False)
Wtime, Wtick = time.perf_counter, _always(time.get_clock_info("perf_counter").resolution)
Get_processor_name = platform.node
Get_version, Get_abi_version = _always((4, 1)), _always((-1, -1))
Get_library_version = _always(f"cobre_comm {VERSION}, no MPI")
get_vendor = _always(("cobre_comm", tuple(map(int, VERSION.split(".")))))


@functools.cache
def __getattr__(name: str) -> Any:
    if name == "COMM_WORLD":
        return Intracomm(cobre_comm.create_communicator(), name)
    if name == "COMM_SELF":
        return Intracomm(cobre_comm.LocalBackend(), name)
    raise AttributeError(name) if name[0] == "_" else lacking(f"MPI.{name}")


# For `from mpi4py.MPI import *`, which gets the first two names by __getattr__.
__all__ = ["COMM_SELF", "COMM_WORLD", *(n for n in globals() if n[0].isupper())]  # noqa: F822
