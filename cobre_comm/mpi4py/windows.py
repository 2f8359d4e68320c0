"""Windows of mpi4py: memory in which ranks of a machine read and write each other's parts.

The lock of a rank's part is a lock of the operating system on one byte of a file without a name. So
a rank that ends releases its locks, however it ends. A rank that holds a lock exclusively writes a
mark into the window, and removes the mark before it releases the lock. If a rank gets a lock and
finds a mark, the mark says which rank has ended during a change. The locks order the plain accesses
to marks and parts: what a rank wrote before it released a lock is seen by the rank that gets the
lock next.

Sources: fcntl(2), memfd_create(2); the MPI standard 4.1, chapter 12.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import time
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np

from cobre_comm import CollectiveFailed, CommError, Communicator, LocalBackend
from cobre_comm.backends.comm_group import CommGroup
from cobre_comm.backends.shm.nameless import hand_over
from cobre_comm.backends.shm.offer import make_private
from cobre_comm.config import TIMEOUT_S
from cobre_comm.mpi4py.missing import PAGE, NotHere
from cobre_comm.mpi4py.specifications import Array, Partial, elements, whole
from cobre_comm.system.descriptor import Descriptor
from cobre_comm.system.running_time import running_s

LOCK_EXCLUSIVE, LOCK_SHARED = 1, 2
CACHE_LINE = 64
LONGEST_NAP_S = 1e-3
FLOCK = "hhqqi0q"  # of Linux: type, whence, start, length, pid
# How many hold each communicator: the program, and each window. A window may be freed last.
_HOLDERS: WeakKeyDictionary[Communicator, int] = WeakKeyDictionary()


def let_go(comm: Communicator) -> None:
    """Close a communicator, unless somebody else holds it."""
    _HOLDERS[comm] = left = _HOLDERS.get(comm, 1) - 1
    if left <= 0:
        comm.close()


class OutOfTurn(CommError):
    """A lock was requested twice, or released by a rank that does not hold it."""

    def __init__(self, call: str, sentence: str) -> None:
        Exception.__init__(self, call, sentence)
        self.add_note(f"more: {PAGE}")

    def __str__(self) -> str:
        return "{}: MPI_ERR_RMA_SYNC: {}".format(*self.args)


class Win(Partial):
    """A window of the ranks of one machine. Ranks of several machines cannot make a window."""

    def __init__(self, size: int, unit: int, comm: Communicator, line: int = CACHE_LINE) -> None:
        if len(comm.topology().ranks) > 1:
            raise NotHere("Win", "is for the ranks of one machine here")
        if size < 0 or unit < 1:
            raise ValueError(f"Win: a size of {size} and a unit of {unit} cannot be used")
        table = np.empty((comm.size, 3), dtype=np.int64)
        comm.allgather(np.array([size, unit, os.getpid()]), table)
        self._comm = comm
        self._sizes, self._units, self._pids = table.T.tolist()
        lengths = -(-table[:, 0] // line) * line
        self._begins = (np.cumsum(lengths) - lengths).tolist()
        self._region = comm.create_shared_region(int(lengths.sum()), np.uint8)
        self._marks = comm.create_shared_region(comm.size, np.int64)  # 1 + the exclusive holder
        file, problem = hand_over(CommGroup(comm), 0, make_private)  # exists until all ranks end
        if problem:
            raise NotHere("Win", f"needs memfd_create and /proc of Linux here: {problem}")
        self._file = cast(Descriptor, file)
        self._freed = False
        _HOLDERS[comm] = _HOLDERS.get(comm, 1) + 1
        self._held: dict[int, int] = {}  # by rank: how this rank holds the lock of that rank's part
        config = getattr(comm, "_config", None)  # None over local
        self._timeout_s = getattr(config, "timeout_s", TIMEOUT_S)

    @classmethod
    def Allocate(cls, size: int, disp_unit: int = 1, info: Any = None, comm: Any = None) -> Win:
        return cls._made("Win.Allocate", size, disp_unit, comm)

    @classmethod
    def Allocate_shared(
        cls, size: int, disp_unit: int = 1, info: Any = None, comm: Any = None
    ) -> Win:
        return cls._made("Win.Allocate_shared", size, disp_unit, comm, line=1)

    @classmethod
    def _made(cls, call: str, size: int, unit: int, comm: Any, line: int = CACHE_LINE) -> Win:
        of: Any = comm._comm if comm else LocalBackend()
        with of._serving(f"mpi4py.{call}"):
            return cls(whole(size), whole(unit), of, line)

    def tomemory(self) -> memoryview:
        return self._part(self._comm.rank).data

    def Shared_query(self, rank: int) -> tuple[memoryview, int]:
        if (rank := whole(rank)) < 0:  # PROC_NULL: stands for the first part that is not empty
            rank = next((r for r, size in enumerate(self._sizes) if size), 0)
        return self._part(rank).data, self._units[rank]

    def Fence(self, assertion: int = 0) -> None:
        self._region.fence()

    def Lock(self, rank: int, lock_type: int = LOCK_EXCLUSIVE, assertion: int = 0) -> None:
        rank = self._known(rank)
        if rank in self._held:  # the system would grant a process its own lock again
            said = f"this rank holds the lock of rank {rank} already; call Unlock({rank}) first"
            raise OutOfTurn("Win.Lock", said)
        how = fcntl.LOCK_EX if lock_type == LOCK_EXCLUSIVE else fcntl.LOCK_SH
        gate = self._comm.size + rank  # a byte: later readers wait behind a writer that waits here
        self._take(gate, how, rank)
        try:
            self._take(rank, how, rank)
        finally:
            self._give_back(gate)
        mark = self._marks.part(rank, rank + 1)
        mine = self._comm.rank + 1
        if mark[0] not in (0, mine):  # mine: left by a Lock here that a signal interrupted
            self._give_back(rank)
            raise _lost(int(mark[0]) - 1, f"ended while it changed the part of rank {rank}")
        if mark[0] != (wanted := mine if how == fcntl.LOCK_EX else 0):
            mark[0] = wanted
        self._held[rank] = how

    def Unlock(self, rank: int) -> None:
        rank = self._known(rank)
        if rank not in self._held:
            said = f"this rank does not hold the lock of rank {rank}; call Lock({rank}) first"
            raise OutOfTurn("Win.Unlock", said)
        if self._held[rank] == fcntl.LOCK_EX:
            self._marks.part(rank, rank + 1)[0] = 0
        self._give_back(rank)
        del self._held[rank]

    def Get(self, origin: Any, target_rank: int, target: Any = None) -> None:
        array = elements(origin).reshape(-1).view(np.uint8)
        array[:] = self._target(target_rank, target, array.size)

    def Put(self, origin: Any, target_rank: int, target: Any = None) -> None:
        array = elements(origin).reshape(-1).view(np.uint8)
        self._target(target_rank, target, array.size)[:] = array

    def Free(self) -> None:
        self._comm.barrier()
        for part in (self._region, self._marks, self._file):
            part.close()
        if not self._freed:
            self._freed = True
            let_go(self._comm)

    def _known(self, rank: int) -> int:
        if not 0 <= (rank := whole(rank)) < self._comm.size:
            raise ValueError(f"Win: {rank} is none of the {self._comm.size} ranks")
        return rank

    def _part(self, rank: int) -> Array:
        begin = self._begins[rank]
        return self._region.part(begin, begin + self._sizes[rank])

    def _target(self, rank: int, target: Any, nbytes: int) -> Array:
        """Return ``nbytes`` bytes of a rank's part, from the displacement in ``target`` on."""
        rank = self._known(rank)
        begin = int((target[0] if np.ndim(target) else target) or 0) * self._units[rank]
        if not 0 <= begin <= begin + nbytes <= self._sizes[rank]:
            part = f"the part of rank {rank}, which has {self._sizes[rank]}"
            raise ValueError(f"Win: bytes {begin} to {begin + nbytes} are not inside {part}")
        return self._part(rank)[begin : begin + nbytes]

    def _take(self, byte: int, how: int, rank: int) -> None:
        give_up = running_s() + (self._timeout_s or float("inf"))
        nap_s = 1e-6
        while True:
            with contextlib.suppress(BlockingIOError, PermissionError):  # another rank holds it
                fcntl.lockf(self._file.number, how | fcntl.LOCK_NB, 1, byte)
                return
            if running_s() > give_up:
                ask = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
                told = struct.unpack(FLOCK, fcntl.fcntl(self._file.number, fcntl.F_GETLK, ask))
                if told[-1] in self._pids:
                    since = f"has held the lock of rank {rank} for {self._timeout_s:g} s"
                    raise _lost(self._pids.index(told[-1]), since)
            time.sleep(nap_s)
            nap_s = min(2 * nap_s, LONGEST_NAP_S)

    def _give_back(self, byte: int) -> None:
        fcntl.lockf(self._file.number, fcntl.LOCK_UN, 1, byte)


def _lost(rank: int, what: str) -> CollectiveFailed:
    return CollectiveFailed("Win.Lock", message=f"rank {rank} {what}", ranks=[rank])
