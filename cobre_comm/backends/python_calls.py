"""The collectives of a backend as Python calls them where the fast path does not serve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from cobre_kernels.collective import entry, status
from cobre_kernels.collective.calls import (
    ALLGATHERV,
    ALLREDUCE,
    BARRIER,
    BROADCAST,
    EXACT_SUM,
    GATHERV,
    Barrier,
    ExactSum,
    Gatherv,
)
from cobre_kernels.collective.reduction import exact_sum

from cobre_comm import failure, slow_path
from cobre_comm.common.call_forms import tells_forms
from cobre_comm.communicator import Array, Communicator, Counts
from cobre_comm.errors import InvalidRoot
from cobre_comm.loading import load
from cobre_comm.reduce_op import ReduceOp


class _Words:
    """Where the fast methods find the record: in the first slot of an object."""

    __slots__ = ("_words",)


@tells_forms("comm")
class PythonCalls(_Words, Communicator):
    """Convert or refuse arguments, call the entry, and raise what its outcome means."""

    __slots__ = ()

    _address: int
    _rank: int
    _size: int

    def barrier(self) -> None:
        """Return when all ranks have entered."""
        self._agree_on(BARRIER, 0)

    def broadcast(self, buf: Array, root: int = 0) -> None:
        """Give every rank the bytes of the root."""
        root = slow_path.as_integer("broadcast", "root", root)
        call = slow_path.broadcast_call(buf, root, self._rank)
        try:
            outcome = entry.broadcast_entry.call(self._address, call)
        except OverflowError:  # the integer does not fit into 64 bits
            raise InvalidRoot(root, self._size) from None
        if outcome:
            self._raise(BROADCAST, outcome, buf, root)

    def allreduce(self, send: Array, recv: Array, op: ReduceOp = ReduceOp.SUM) -> None:
        """Reduce element by element over all ranks, in rank order; every rank gets the result."""
        op = slow_path.as_reduce_op(op)
        call = slow_path.allreduce_call(send, recv, op)
        if op > ReduceOp.MAX:
            load(self._address, ALLREDUCE)
        outcome = entry.allreduce_entry.call(self._address, call)
        if outcome:
            self._raise(ALLREDUCE, outcome, send, recv)

    def allgatherv(self, send: Array, recv: Array, counts: Counts, displs: Counts) -> None:
        """Gather blocks of different lengths from all ranks, on all ranks."""
        counts = slow_path.as_table("allgatherv", "counts", counts)
        displs = slow_path.as_table("allgatherv", "displs", displs)
        call = slow_path.blocks_call("allgatherv", send, recv, counts, displs)
        outcome = entry.allgatherv_entry.call(self._address, call)
        if outcome:
            self._raise(ALLGATHERV, outcome, send, recv, counts, displs)

    def gatherv(
        self,
        send: Array,
        recv: Array | None,
        counts: Counts | None,
        displs: Counts | None,
        root: int = 0,
    ) -> None:
        """Gather blocks of different lengths from all ranks, on the root."""
        root = slow_path.as_integer("gatherv", "root", root)
        if root == self._rank:
            counts = slow_path.as_table("gatherv", "counts", counts)
            displs = slow_path.as_table("gatherv", "displs", displs)
            blocks = slow_path.blocks_call("gatherv", send, recv, counts, displs)
            call = Gatherv(*blocks, root)
        else:
            counts = displs = None
            call = slow_path.sender_call(send, root)
        load(self._address, GATHERV)
        try:
            outcome = entry.gatherv_entry.call(self._address, call)
        except OverflowError:  # the integer does not fit into 64 bits
            raise InvalidRoot(root, self._size) from None
        if outcome == status.BAD_ROOT:
            raise InvalidRoot(root, self._size)
        if outcome:
            self._raise(GATHERV, outcome, send, recv, counts, displs)

    def exact_sum(self, values: Array) -> float:
        """Return the sum of every element on every rank, rounded once."""
        array, dtype = slow_path.exact_sum_values(values)
        digits = np.zeros(exact_sum.WORDS, dtype=np.int64)
        call = ExactSum(array.ctypes.data, array.size, dtype, digits.ctypes.data)
        outcome = exact_sum.exact_sum_entry.call(self._address, call)
        if outcome:
            self._raise(EXACT_SUM, outcome)
        return float(digits.view(np.float64)[0])

    def _agree_on(self, signature: int, length: int) -> None:
        """Wait for the other ranks, which must give the same signature and length."""
        outcome = entry.barrier_entry.call(self._address, Barrier(signature, length))
        if outcome:
            self._raise(signature & 0xFF, outcome)

    def _raise(self, operation: int, outcome: int, *values: Any) -> NoReturn:
        numbers = slow_path.numbers_of(operation, outcome, self._rank, *values)
        raise failure.exception_for(self._address, operation, outcome, *numbers)


_SERVED_BY: dict[int, Callable[..., None]] = {
    BARRIER: PythonCalls.barrier,
    BROADCAST: PythonCalls.broadcast,
    ALLREDUCE: PythonCalls.allreduce,
    ALLGATHERV: PythonCalls.allgatherv,
}


def serve_slowly(
    comm: PythonCalls, operation: int, outcome: int, names: tuple[str, ...] | None, *values: Any
) -> None:
    """Serve a call that the fast path leaves, or raise what its outcome means."""
    if outcome > status.OK:  # then the values are in the order of the parameters
        comm._raise(operation, outcome, *values)
    serve = _SERVED_BY[operation]
    if names is None:
        serve(comm, *values)
    else:
        first_named = len(values) - len(names)
        keywords = dict(zip(names, values[first_named:], strict=True))
        serve(comm, *values[:first_named], **keywords)
