"""Work that is shared out while it is done: the next item goes to whichever rank asks."""

from __future__ import annotations

import itertools
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn, Protocol

import numpy as np
from cobre_kernels.collective import status, work
from cobre_kernels.collective.calls import CLAIM, COSTS, RESET
from cobre_kernels.collective.work import CLAIMS, NOTHING_LEFT, WORK
from cobre_kernels.machine.access import store_word_kernel
from cobre_kernels.machine.record import WORD_BYTES, peek_now, poke_now
from numpy.typing import NDArray

from cobre_comm import old_names
from cobre_comm.arguments.arrays import as_numbers
from cobre_comm.arguments.mistakes import WORK as WORK_WORD
from cobre_comm.arguments.mistakes import explained
from cobre_comm.contract.closing import Closing
from cobre_comm.contract.numba_types import LateType
from cobre_comm.contract.shared_region import RegionOwner, SharedRegion
from cobre_comm.reports.tracebacks import methods_tell_callers
from cobre_comm.system.log import logger

SECOND_PASS = (
    "a second loop over a work gets no item: each item is given out once in a round; begin another "
    "round by work.reset() on all ranks before the loop"
)
WORK_IS_NO_SEQUENCE = (
    "a work is no sequence: work.count is the number of items, and `for item in work` takes those "
    "that this rank does, or item = work.claim() one of them"
)
LARGEST_COUNT = 2**48
CLAIMS_WORDS = CLAIMS.size_bytes // WORD_BYTES


class WorkOwner(RegionOwner, Protocol):
    """What a work uses of its communicator, beside what the work's region uses of it."""

    _address: int

    def allreduce(self, send: NDArray[Any], recv: NDArray[Any]) -> None:
        """Sum element by element over all ranks."""

    def _agree_on(self, signature: int, compared: int) -> None:
        """Wait for all ranks, all of which must give these two numbers."""

    def _together(self, name: str) -> AbstractContextManager[None]:
        """Break the communicator if this rank fails between steps that belong together."""

    def _error(self, operation: int, outcome: int) -> BaseException:
        """Return the exception that stands for an outcome; the caller is to raise it at once."""

    def _seconds(self, ticks: NDArray[np.int64]) -> NDArray[np.float64]:
        """Convert ticks to seconds."""


@methods_tell_callers(quick=["claim"])
class Work(Closing):
    """Items 0 to n - 1, which ranks claim one by one; made by ``create_work``.

    On one node any rank may get any item. If there are several nodes, each node gets a block of
    items, in proportion to its number of ranks: a part of the number of items, or, if :meth:`reset`
    gets costs, a part of the total cost. Which rank gets an item changes from run to run. So let
    each item write its result to elements of its own, and read the results after a collective. Then
    they have the same bits as with equal shares.

    No item is claimed twice in a round. Several threads of a rank may claim at once, but no thread
    may claim while another thread resets. :meth:`claim`, ``count``, ``start`` and ``stop`` work in
    ``@njit`` code too.

    Attributes
    ----------
    count : int
        Number of items, on all nodes.
    start, stop : int
        The items of this node in this round are ``range(start, stop)``.

    Examples
    --------
    >>> from cobre_comm import LocalBackend
    >>> comm = LocalBackend()
    >>> squares = comm.create_shared_region(4, np.int64)
    >>> with comm.create_work(4) as work:
    ...     for i in work:
    ...         squares.part(i, i + 1)[:] = i * i
    ...     squares.fence()
    >>> squares.as_slice()
    array([0, 1, 4, 9])
    """

    _numba_type_: Any = LateType("work")
    _holder = "work"

    def __init__(
        self,
        comm: WorkOwner,
        nodes: Sequence[int],
        node: int,
        region: SharedRegion,
        claimed: NDArray[np.int64],
    ) -> None:
        self._comm = comm
        self._region, self._identity = region, region._identity
        self._nodes, self._node = nodes, node
        self.count = claimed.size
        self._order: NDArray[np.int64] | None = None  # never replaced: threads may be reading it
        self._claimed = claimed
        self._passed: int | None = None  # the round in which the main thread has found no item left
        self._has_warned = False
        self._words = WORK.array()
        self._address: int = self._words.ctypes.data  # compiled code finds the work by this address
        self._state = state = WORK.of(self._words)
        state.comm, state.claims = comm._address, region.as_slice().ctypes.data
        state.count, state.claimed = claimed.size, claimed.ctypes.data
        self._begin(self._block(None), None)

    def claim(self) -> int:
        """Return the next item that no rank has claimed; -1 when this node has none left.

        ``claim`` waits for no other rank, and takes some 20 to 40 ns in ``@njit`` code.

        Raises
        ------
        InvalidCommunicator
            If this work is closed, or its communicator cannot be used any more; or if another
            thread of this rank resets the work meanwhile.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> work = LocalBackend().create_work(2)
        >>> work.claim(), work.claim(), work.claim()
        (0, 1, -1)
        """
        item: int = work.claim_kernel.call(self._address)
        if item < NOTHING_LEFT:
            raise self._comm._error(CLAIM, -item)
        return item

    def __iter__(self) -> Iterator[int]:
        if self._passed == peek_now(self._state.round) and not self._has_warned:
            self._has_warned = True
            logger.warning(SECOND_PASS)
        return itertools.chain(iter(self.claim, NOTHING_LEFT), self._end_of_pass())

    def _end_of_pass(self) -> Iterator[int]:
        """Note that the main thread has found no item left; yield no item.

        Other threads do not count: several tasks of a pool of threads may loop over the work, one
        after another, and a later task finds no item.
        """
        if threading.current_thread() is threading.main_thread():
            self._passed = peek_now(self._state.round)
        yield from ()

    @old_names.also_by_position("order", "costs")
    def reset(
        self,
        *,
        order: Sequence[int] | NDArray[np.integer[Any]] | None = None,
        costs: Sequence[float] | NDArray[Any] | None = None,
    ) -> None:
        """Begin a new round, in which every item can be claimed again; collective.

        Items of the old round that no rank has claimed are dropped. No rank claims from the new
        round before all ranks have made this call.

        Parameters
        ----------
        order : sequence of int, optional
            A permutation of all items, the same on all ranks. Each node hands its items out in this
            order, so the items that take longest should come first. The default is ascending order.
        costs : sequence of float, optional
            What each item is expected to cost, in any unit, the same on all ranks; at least 0. Each
            node gets a block of items, and the costs of the blocks are in proportion to the numbers
            of ranks. By default, and if all costs are 0, each item costs the same.

        Raises
        ------
        TypeError, ValueError
            For an ``order`` that is no permutation, or ``costs`` that cannot be used, before
            anything is sent.
        CollectiveFailed
            If a rank is lost or late, or ranks disagree.
        InvalidCommunicator
            If this work is closed, or its communicator cannot be used any more.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> work = LocalBackend().create_work(3)
        >>> list(work)
        [0, 1, 2]
        >>> work.reset(order=[2, 0, 1])
        >>> list(work)
        [2, 0, 1]
        """
        items = None if order is None else _permutation(order, self.count)
        expected = None if costs is None else _expected(costs, self.count)
        block = begin, end = self._block(expected)
        self._comm._check_usable()  # or a forked child would set the parent's claims to zero
        held = following = self._close_round()
        try:
            digest = _digest(self._identity, held, items, expected)
            if items is not None:
                items = items[(begin <= items) & (items < end)]
                if self._order is None:
                    self._order = np.zeros(self.count, dtype=np.int64)
            if self._comm.is_leader:
                parity = 1 - (held >> 1 & 1)
                # Pairs with the addition of a claim, which comes after the collective below.
                store_word_kernel.call(self._state.claims[parity].made, 0)
            self._comm._agree_on(RESET, digest)
            self._begin(block, items)
            following = held + 2
        finally:
            self._turn(held + 1, following)

    def _close_round(self) -> int:
        """Stop the threads of this rank from claiming; return what the word of the round held."""
        held = peek_now(self._state.round)
        if held & 1 or self._turn(held, held + 1) != held:
            is_closed = peek_now(self._state.round) == work.CLOSED
            outcome = status.WORK_IS_CLOSED if is_closed else status.WORK_IS_RESET
            raise self._comm._error(RESET, outcome)
        return int(held)

    def _turn(self, held: int, following: int) -> int:
        """Set the word of the round to ``following`` if it holds ``held``; return what it held."""
        found: int = work.turn_kernel.call(self._address, held, following)
        return found

    def _block(self, costs: NDArray[np.float64] | None) -> tuple[int, int]:
        """Return the first item of this node, and the item after its last."""
        edges = _edges(self.count, self._nodes, costs)
        return edges[self._node], edges[self._node + 1]

    def _begin(self, block: tuple[int, int], items: NDArray[np.int64] | None) -> None:
        """Note the items of a new round, while no thread can claim from it."""
        state = self._state
        self.start, self.stop = state.first, state.last = block
        state.order = 0
        if items is not None and self._order is not None:
            self._order[: items.size] = items
            state.order = self._order.ctypes.data
        poke_now(state.ended, 0)
        state.began = work.ticks_kernel.call(self._address)

    def measured_costs(self) -> NDArray[np.float64]:
        """Return how many seconds each item has taken in this round, on all ranks; collective.

        The time of an item lasts from its claim to the next claim by any thread of the same rank.
        If the rank has claimed nothing since, the time lasts to this call.

        Returns
        -------
        ndarray of float64, shape (count,)
            Seconds of each item, the same bits on all ranks; 0 for an item that no rank has
            claimed.

        Raises
        ------
        CollectiveFailed
            If a rank is lost or late, or ranks disagree.
        InvalidCommunicator
            If this work is closed, or its communicator cannot be used any more.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> work = LocalBackend().create_work(3)
        >>> for i in work:
        ...     pass
        >>> costs = work.measured_costs()
        >>> bool((costs > 0).all())
        True
        >>> work.reset(order=np.argsort(-costs, kind="stable"), costs=costs)
        """
        if peek_now(self._state.round) == work.CLOSED:
            raise self._comm._error(COSTS, status.WORK_IS_CLOSED)
        now = work.ticks_kernel.call(self._address)
        self._comm._agree_on(COSTS, self._identity)
        with self._comm._together("measured_costs"):
            seconds = self._own_costs(now)
            if self.count:
                self._comm.allreduce(seconds, seconds)  # all ranks but one add 0 to an item
        return seconds

    def _own_costs(self, now: int) -> NDArray[np.float64]:
        """Return the seconds until now of each item of this rank, and 0 for all other items."""
        seconds = np.zeros(self.count)
        [mine] = np.nonzero(self._claimed >= self._state.began)
        mine = mine[np.argsort(self._claimed[mine])]
        lengths = np.diff(self._claimed[mine], append=peek_now(self._state.ended) or now)
        seconds[mine] = self._comm._seconds(np.maximum(lengths, 0))  # ended may be before a claim
        return seconds

    def close(self) -> None:
        """Let no thread of this rank claim any more; idempotent, and waits for no rank.

        Examples
        --------
        >>> from cobre_comm import LocalBackend
        >>> work = LocalBackend().create_work(3)
        >>> work.close()
        >>> work
        Work(count=3, closed)
        """
        # Pairs with the loads in work.claim. The memory stays: other threads may be claiming.
        store_word_kernel.call(self._state.round, work.CLOSED)

    def _refuse(self, *_: object) -> NoReturn:
        """Raise if the work is used as a sequence: its items are only given to ranks that ask."""
        raise explained(TypeError(WORK_IS_NO_SEQUENCE), WORK_WORD)

    __getitem__ = __len__ = _refuse

    def __bool__(self) -> bool:
        return True  # otherwise Python would ask for the length, which is refused

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a work cannot be pickled: send numbers of items, which are plain integers, or let "
            "each rank claim its own by item = work.claim()"
        )

    def __repr__(self) -> str:
        closed = ", closed" if peek_now(self._state.round) == work.CLOSED else ""
        return f"{type(self).__name__}(count={self.count}{closed})"


def _edges(count: int, nodes: Sequence[int], costs: NDArray[np.float64] | None) -> list[int]:
    """Return where the block of each node begins, and, at the end, where the last block ends.

    ``nodes`` has the number of ranks of each node. With costs, each node has a part of the total
    cost. An item belongs to the node that has the middle of the item's cost in its part.
    """
    before = [0, *np.cumsum(nodes).tolist()]
    largest = 0.0 if costs is None else float(costs.max(initial=0.0))
    if costs is None or largest == 0.0:
        return [count * ranks // before[-1] for ranks in before]
    scaled = costs / largest  # so that the total is finite
    ends = np.cumsum(scaled)
    inner = [ends[-1] * ranks / before[-1] for ranks in before[1:-1]]
    return [0, *np.searchsorted(ends - scaled / 2, inner).tolist(), count]


def _permutation(order: Any, count: int) -> NDArray[np.int64]:
    """Return an order of the items as an array; raise if it is no permutation."""
    items = _numbers("order", order, "iu", "integers", count)
    outside = (items < 0) | (items >= count)
    if outside.any():
        raise ValueError(f"reset: order has {items[outside][0]}, which is none of {count} items")
    times = np.bincount(items.astype(np.int64), minlength=count)
    if (times > 1).any():
        raise ValueError(f"reset: order has item {times.argmax()} more than once")
    return items.astype(np.int64)


def _expected(costs: Any, count: int) -> NDArray[np.float64]:
    """Return the costs of the items as an array; raise if they cannot be used."""
    expected = _numbers("costs", costs, "iuf", "numbers", count).astype(np.float64)
    wrong = ~(np.isfinite(expected) & (expected >= 0))
    if wrong.any():
        raise ValueError(f"reset: costs must be finite and at least 0, got {expected[wrong][0]}")
    return expected


def _numbers(name: str, values: Any, kinds: str, what: str, count: int) -> NDArray[Any]:
    """Return an array with a number for each item; raise if the values cannot be used."""
    array = as_numbers("reset", name, values)
    if array.ndim != 1 or array.size != count:
        raise ValueError(
            f"reset: {name} must have one number for each of {count} items, got shape {array.shape}"
        )
    if array.size and array.dtype.kind not in kinds:
        raise TypeError(f"reset: {name} must be {what}, got {array.dtype}")
    return array


def _digest(*values: NDArray[Any] | int | None) -> int:
    """Return one number for these arrays and numbers, so that ranks can compare it."""
    digest = 0
    for value in values:
        number = -1 if value is None else value
        digest = zlib.crc32(np.ascontiguousarray(number).data, digest)
    return digest
