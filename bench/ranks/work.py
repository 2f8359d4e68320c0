"""What is called on which buffers, and what must be in them afterwards.

This module knows no library: a *side* binds one operation on one slot of buffers to a call without
arguments, ``side.bind(operation, slot)``. Slots are used in turn, so no call finds its buffers in
the cache because the last one left them there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.ranks.timing import Side

SLOT_BYTES = 64 * 2**20  # of all slots of a case together, where they are many
MOST_SLOTS = 16
MOST_CALLS = 5000  # of a block: each is an object
NO_CACHE_BYTES = 128 * 2**20  # of one slot: passes any cache, so it need not have a second one

# The reference configuration of the user's system: stages, trajectories, float64 of a trial point,
# octets of a cut.
STAGES, TRAJECTORIES, POINT, CUT_BYTES = 120, 192, 1120, 16_660
SDDP_BYTES = STAGES * TRAJECTORIES * POINT * 8 + (STAGES - 1) * TRAJECTORIES * CUT_BYTES + 5 * 8

Call = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """One operation on so many bytes per rank; ``sddp`` is a whole iteration's traffic."""

    label: str
    operation: str
    nbytes: int = 0


@dataclass(frozen=True)
class Slot:
    """Buffers of one call. ``key`` makes their content differ from that of all other slots."""

    operation: str
    key: int
    send: np.ndarray
    recv: np.ndarray
    counts: np.ndarray
    displs: np.ndarray


def contribution(key: int, rank: int, count: int, dtype: type) -> np.ndarray:
    """What a rank sends: sums of these round differently in every order of the ranks."""
    index = np.arange(count)
    if dtype is np.uint8:
        return (index * 7 + 31 * rank + 3 * key).astype(np.uint8)
    return (index * 0.1 + key + 1) * (1 + rank / 3)


def make_slot(operation: str, key: int, rank: int, counts: list[int], dtype: type) -> Slot:
    """Return buffers whose results are not yet there."""
    send = contribution(key, rank, counts[rank], dtype)
    if operation == "broadcast" and rank != 0:
        send[:] = -1
    total = sum(counts) if operation == "allgatherv" else len(send)
    recv = np.full(0 if operation == "broadcast" else total, 255, dtype=dtype)
    table = np.array(counts, dtype=np.int64)
    return Slot(operation, key, send, recv, table, np.cumsum(table) - table)


def verify(slot: Slot, in_rank_order: bool) -> None:
    """Compare bits with NumPy; a library that sums in another order may differ by rounding."""
    dtype = slot.send.dtype.type
    everyone = [contribution(slot.key, r, int(n), dtype) for r, n in enumerate(slot.counts)]
    if slot.operation == "broadcast":
        actual, expected = slot.send, everyone[0]
    elif slot.operation == "allgatherv":
        actual, expected = slot.recv, np.concatenate(everyone)
    else:
        fold = {"sum": np.add, "min": np.minimum}[slot.operation]
        actual, expected = slot.recv, everyone[0]
        for other in everyone[1:]:
            expected = fold(expected, other)
    same = np.array_equal(actual, expected)
    if not same and not in_rank_order and slot.operation == "sum":
        same = np.allclose(actual, expected, rtol=1e-14, atol=0)
    if not same:
        raise AssertionError(f"{slot.operation} of {slot.send.nbytes} bytes: wrong result")


class Work:
    """The slots of a case on one rank, for one side, and the calls on them in turn.

    Parameters
    ----------
    case : Case
        What to call.
    side : object
        With ``bind(operation, slot)`` and ``in_rank_order``.
    rank, size : int
        This rank, and the number of ranks.
    """

    def __init__(self, case: Case, side, rank: int, size: int) -> None:
        self._side = side
        self._slots: list[Slot] = []
        if case.operation == "barrier":
            self._uses: list[list[Call]] = [[side.bind("barrier", None)]]
        elif case.operation == "sddp":
            self._uses = [self._iteration(rank, size)]
        else:
            counts = [case.nbytes // 8] * size
            self._uses = [
                [self._bind(case.operation, key, rank, counts)]
                for key in range(_slot_count(case, size))
            ]
        self._cycle = itertools.cycle(self._uses)

    def _bind(self, operation: str, key: int, rank: int, counts: list[int], dtype=np.float64):
        slot = make_slot(operation, key, rank, counts, dtype)
        self._slots.append(slot)
        return self._side.bind(operation, slot)

    def _iteration(self, rank: int, size: int) -> list[Call]:
        """Trial points of the forward pass, cuts of each stage, the bounds: 587 MB in all."""
        edges = [r * TRAJECTORIES // size for r in range(size + 1)]
        mine = [stop - start for start, stop in itertools.pairwise(edges)]
        points = self._bind("allgatherv", 0, rank, [STAGES * POINT * n for n in mine])
        cut_counts = [CUT_BYTES * n for n in mine]
        cuts = [self._bind("allgatherv", key, rank, cut_counts, np.uint8) for key in range(8)]
        bounds = [self._bind("sum", 0, rank, [4] * size), self._bind("min", 1, rank, [1] * size)]
        return [points, *itertools.islice(itertools.cycle(cuts), STAGES - 1), *bounds]

    def next_calls(self, count: int) -> list[Call]:
        """Return the calls of so many uses of the operation, in order."""
        return [call for calls in itertools.islice(self._cycle, count) for call in calls]

    @property
    def timed(self) -> Side:
        """What is timed; to warm up, every slot is used once."""

        def prepare(count: int) -> Call:
            calls = self.next_calls(count)

            def block() -> None:
                for call in calls:
                    call()

            return block

        return Side(prepare, warm=len(self._uses), most=MOST_CALLS)

    def verify(self) -> None:
        """Look at what the calls left in all slots, each of which must have been used."""
        own = getattr(self._side, "verify", None)  # of a side that leaves something else behind
        for slot in self._slots:
            if own:
                own(slot)
            else:
                verify(slot, self._side.in_rank_order)


def _slot_count(case: Case, size: int) -> int:
    largest = case.nbytes * (1 + size * (case.operation == "allgatherv"))
    fewest = 1 if largest > NO_CACHE_BYTES else 2
    return max(fewest, min(MOST_SLOTS, SLOT_BYTES // largest))
