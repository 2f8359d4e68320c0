"""What all backends share: a state, four kernels, and the way of a Python call to them."""

from __future__ import annotations

import atexit
import contextlib
import os
import weakref
import zlib
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from cobre_kernels import dtypes, layout, status
from cobre_kernels.atomics import WORD_BYTES
from cobre_kernels.doors import array_type_address, door
from cobre_kernels.exact_sum import WORDS, exact_add_kernel, exact_round_kernel
from cobre_kernels.fold import fold_kernel
from cobre_kernels.guard import shut_kernel
from cobre_kernels.kernel import Kernel
from cobre_kernels.kind import (
    ALLGATHERV,
    ALLREDUCE,
    BARRIER,
    BROADCAST,
    CREATE_REGION,
    EXACT_SUM,
    FENCE,
    HASH_MASK,
)
from numpy.typing import DTypeLike

from cobre_comm import checks
from cobre_comm.communicator import Array, Communicator, Counts, SharedMemoryProvider
from cobre_comm.errors import InvalidCommunicator, InvalidRoot
from cobre_comm.failure import exception_for
from cobre_comm.reduce_op import ReduceOp
from cobre_comm.shared_region import region_layout

_live: weakref.WeakSet[KernelBackend] = weakref.WeakSet()


@dataclass(frozen=True)
class KernelSet:
    """The kernels of one backend; their addresses go into the state.

    ``shared`` are called by the others.
    """

    synchronise: Kernel
    broadcast: Kernel
    allreduce: Kernel
    allgatherv: Kernel
    shared: tuple[Kernel, ...] = ()

    def in_order(self) -> list[Kernel]:
        """Return the kernels that callers know, in the order of the state's table."""
        return [self.synchronise, self.broadcast, self.allreduce, self.allgatherv]

    def all(self) -> list[Kernel]:
        """Return all that is to be compiled."""
        return [*self.shared, *self.in_order()]


class KernelBackend(Communicator, SharedMemoryProvider):
    """A communicator whose collectives are kernels on a private state.

    A call goes to the compiled door, which checks plain arguments and calls the kernel. A status
    other than OK leads to the careful path: convert what is unusual, explain what is wrong.
    """

    __slots__ = (
        "_address", "_allgatherv", "_allreduce", "_barrier", "_broadcast", "_kernels",
        "_rank", "_shut", "_size", "_state",
    )  # fmt: skip

    def __init__(
        self, kernels: KernelSet, backend_number: int, rank: int, size: int, *, is_leader: bool
    ) -> None:
        self._kernels = kernels
        self._rank = rank
        self._size = size
        self._state = np.zeros(layout.state_words(size), dtype=np.int64)
        self._address: int = self._state.ctypes.data
        self._set(layout.RANK, rank)
        self._set(layout.COMM_SIZE, size)
        self._set(layout.BACKEND, backend_number)
        self._set(layout.IS_LEADER, 1 if is_leader else 0)
        self._set(layout.ARRAY_TYPE, array_type_address())
        for number, kernel in enumerate(kernels.in_order()):
            self._set(layout.KERNELS + number * WORD_BYTES, kernel.address)
        for number, kernel in enumerate(kernels.shared):
            self._set(layout.SHARED_KERNELS + number * WORD_BYTES, kernel.address)
        self._set(layout.EXACT_ADD_KERNEL, exact_add_kernel.address)
        self._set(layout.EXACT_ROUND_KERNEL, exact_round_kernel.address)
        self._set(layout.FOLD_KERNEL, fold_kernel.address)
        self._barrier = door("barrier")
        self._broadcast = door("broadcast")
        self._allreduce = door("allreduce")
        self._allgatherv = door("allgatherv")
        self._shut = shut_kernel.call  # loaded now: __del__ may run at exit
        _live.add(self)

    def _set(self, offset: int, value: int) -> None:
        self._state[offset // WORD_BYTES] = value

    def _get(self, offset: int) -> int:
        return int(self._state[offset // WORD_BYTES])

    @property
    def rank(self) -> int:
        """This rank."""
        return self._rank

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self._size

    @property
    def is_leader(self) -> bool:
        """See :attr:`SharedMemoryProvider.is_leader`."""
        return self._get(layout.IS_LEADER) != 0

    def barrier(self) -> None:
        """See :meth:`Communicator.barrier`."""
        outcome = self._barrier(self._address)
        if outcome:
            if outcome == status.UNUSUAL_ARGUMENTS:
                self._synchronise(BARRIER, 0)
            else:
                self._raise(BARRIER, outcome, 0, 0)

    def broadcast(self, buf: Array, root: int = 0) -> None:
        """See :meth:`Communicator.broadcast`."""
        if root.__class__ is not int:
            root = checks.as_integer("broadcast", "root", root)
        try:
            outcome = self._broadcast(self._address, buf, root)
        except OverflowError:  # of an integer that is no 64-bit one
            raise InvalidRoot(root, self._size) from None
        if outcome:
            if outcome == status.UNUSUAL_ARGUMENTS:
                plan = checks.plan_broadcast(buf, root, self._rank)
                outcome = self._kernels.broadcast.call(self._address, *plan)
            if outcome:
                self._raise(BROADCAST, outcome, root, 0)

    def allreduce(self, send: Array, recv: Array, op: ReduceOp = ReduceOp.SUM) -> None:
        """See :meth:`Communicator.allreduce`."""
        if op.__class__ is not ReduceOp:
            op = checks.as_reduce_op(op)
        outcome = self._allreduce(self._address, send, recv, op)
        if outcome:
            if outcome == status.UNUSUAL_ARGUMENTS:
                plan = checks.plan_allreduce(send, recv, op)
                outcome = self._kernels.allreduce.call(self._address, *plan)
            if outcome:
                self._raise(ALLREDUCE, outcome, send.size, recv.size)

    def allgatherv(self, send: Array, recv: Array, counts: Counts, displs: Counts) -> None:
        """See :meth:`Communicator.allgatherv`."""
        outcome = self._allgatherv(self._address, send, recv, counts, displs)
        if outcome:
            if outcome == status.UNUSUAL_ARGUMENTS:
                counts = checks.as_table("counts", counts)
                displs = checks.as_table("displs", displs)
                plan = checks.plan_allgatherv(send, recv, counts, displs)
                outcome = self._kernels.allgatherv.call(self._address, *plan)
            if outcome:
                self._explain_allgatherv(outcome, send, recv, counts, displs)

    def exact_sum(self, values: Array) -> float:
        """See :meth:`Communicator.exact_sum`."""
        plan = checks.plan_exact_sum(values)
        digits = np.zeros(WORDS, dtype=np.int64)
        at = digits.ctypes.data
        exact_add_kernel.call(self._address, *plan, at)
        merge = (at, WORDS, at, WORDS, WORD_BYTES, dtypes.EXACT, int(ReduceOp.SUM))
        outcome = self._kernels.allreduce.call(self._address, *merge)
        if outcome:
            self._raise(EXACT_SUM, outcome, 0, 0)
        exact_round_kernel.call(self._address, at, at)
        return float(digits.view(np.float64)[0])

    def _explain_allgatherv(
        self, outcome: int, send: Array, recv: Array, counts: Counts, displs: Counts
    ) -> NoReturn:
        a, b = len(counts), len(displs)
        if outcome == status.SEND_NOT_COUNT:
            a, b = send.size, int(counts[self._rank])
        elif outcome == status.BLOCK_OUTSIDE:
            a, b = max(int(c) + int(d) for c, d in zip(counts, displs, strict=True)), recv.size
        self._raise(ALLGATHERV, outcome, a, b)

    def _synchronise(self, kind: int, length: int) -> None:
        """Meet the other ranks, who must give the same ``kind`` and ``length``."""
        outcome = self._kernels.synchronise.call(self._address, kind, length)
        if outcome:
            self._raise(kind & 0xFF, outcome, 0, 0)

    def _agree_on_region(self, count: int, dtype: DTypeLike) -> tuple[int, np.dtype[Any]]:
        """Check the arguments of a new region, and that all ranks give the same ones."""
        elements, element_type = region_layout(count, dtype)
        shape = zlib.crc32(f"{elements} {element_type.str} {element_type.descr}".encode())
        kind = CREATE_REGION | (shape & HASH_MASK) << 32
        self._synchronise(kind, elements * element_type.itemsize)
        return elements, element_type

    def fence_region(self, identity: int) -> None:
        """Meet at a fence; a step publishes all writes before it (release, acquire)."""
        self._synchronise(FENCE, identity)

    def agree(self, value: int) -> int:
        """Return the smallest value that a rank gives; collective."""
        smallest = np.array([value], dtype=np.int64)
        self.allreduce(smallest, smallest, ReduceOp.MIN)
        return int(smallest[0])

    def check_usable(self) -> None:
        """Raise ``InvalidCommunicator`` if no collective may begin any more."""
        guard = self._get(layout.GUARD)
        refusals = {
            layout.GUARD_BROKEN: status.IS_BROKEN,
            layout.GUARD_CLOSED: status.IS_CLOSED,
            layout.GUARD_FORKED: status.IS_FORKED,
            layout.GUARD_FINALIZED: status.IS_FINALIZED,
        }
        if guard in refusals:
            self._raise(BARRIER, refusals[guard], 0, 0)

    def _raise(self, operation: int, outcome: int, a: int, b: int) -> NoReturn:
        raise exception_for(self._address, operation, outcome, a, b)

    def close(self) -> None:
        """See :meth:`Communicator.close`."""
        self._end()

    def _end(self) -> int:
        """Let no collective begin any more; return what the guard held.

        Raises
        ------
        InvalidCommunicator
            If one is under way in another thread; then nothing has changed.
        """
        guard = int(self._shut(self._address))
        if guard == layout.BUSY:
            raise InvalidCommunicator("close: another thread is inside a collective")
        return guard

    def mark_forked(self) -> None:
        """In a forked child: this communicator is the parent's."""
        self._set(layout.GUARD, layout.GUARD_FORKED)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(rank={self._rank}, size={self._size})"


def _mark_forked() -> None:
    """In a forked child: no communicator of the parent is its own."""
    for comm in list(_live):
        comm.mark_forked()


def _close_all() -> None:
    """At exit, while everything still works: who waits for this rank learns that it left."""
    for comm in list(_live):
        with contextlib.suppress(InvalidCommunicator):
            comm.close()


os.register_at_fork(after_in_child=_mark_forked)
atexit.register(_close_all)
