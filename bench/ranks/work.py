"""The operations, their buffers, and a check of the results.

This module calls no library: a *side* turns an operation and its arrays into a call without
arguments, ``side.call_of(operation, arrays)``. Several sets of arrays are used in turn, so that no
call finds arrays in the cache that the call before has left there.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from cobre_kernels.shm.ways import MOST_TRIED

from bench.ranks.timing import Block, Side

ALL_BYTES = 64 * 2**20  # the arrays of a case together, if the case has many
MOST_SETS = 16
MOST_FRESH_SETS = 256
# A rank writes so many bytes before a row of calls, and they stay in the second-level cache.
FRESH_BYTES = 2**20
MOST_CALLS = 5000  # calls of a block; each call is an object
NO_CACHE_BYTES = 128 * 2**20  # a set of so many bytes exceeds any cache, so that one set is enough

# The reference configuration of the user's system: stages, trajectories, float64 numbers of a trial
# point, bytes of a cut.
STAGES, TRAJECTORIES, POINT, CUT_BYTES = 120, 192, 1120, 16_660
SDDP_BYTES = STAGES * TRAJECTORIES * POINT * 8 + (STAGES - 1) * TRAJECTORIES * CUT_BYTES + 5 * 8

# the name of an operation in the report, and its method if that has another name
CALLS = {"allreduce": "sum"}
Call = Callable[[], object]
Use = tuple[Call, "Arrays | None"]  # a call and its arrays


@dataclass(frozen=True)
class Case:
    """One operation on ``nbytes`` per rank; ``sddp`` is the traffic of a whole iteration."""

    label: str
    operation: str
    nbytes: int = 0


@dataclass
class Arrays:
    """The buffers of one call. ``key`` makes their content differ from that of all other arrays.

    ``sign`` is the sign of all values that are sent.
    """

    operation: str
    key: int
    send: np.ndarray
    recv: np.ndarray
    counts: np.ndarray
    displs: np.ndarray
    sign: int = 1

    def renew(self, rank: int) -> None:
        """Change the sign of all data, as a program has new data in each call."""
        self.sign = -self.sign
        if self.operation != "broadcast" or rank == 0:
            np.negative(self.send, out=self.send)


def contribution(key: int, rank: int, count: int, dtype: type) -> np.ndarray:
    """Return the values that a rank sends; each order of ranks gives a sum with other rounding."""
    index = np.arange(count)
    if dtype is np.uint8:
        return (index * 7 + 31 * rank + 3 * key).astype(np.uint8)
    return (index * 0.1 + key + 1) * (1 + rank / 3)


def make_arrays(
    operation: str, key: int, rank: int, counts: list[int], dtype: type, new_recv: Callable
) -> Arrays:
    """Return buffers in which no result is yet."""
    send = contribution(key, rank, counts[rank], dtype)
    if operation == "broadcast" and rank != 0:
        send[:] = -1
    total = sum(counts) if operation == "allgatherv" else len(send)
    recv = new_recv(total, dtype) if operation != "broadcast" else np.empty(0, dtype)
    table = np.array(counts, dtype=np.int64)
    return Arrays(operation, key, send, recv, table, np.cumsum(table) - table)


def verify(arrays: Arrays, in_rank_order: bool) -> None:
    """Compare bits with NumPy's; rounding may differ if a library sums in another order."""
    dtype = arrays.send.dtype.type
    counts = arrays.counts[:1] if arrays.operation == "broadcast" else arrays.counts
    everyone = [contribution(arrays.key, r, int(n), dtype) for r, n in enumerate(counts)]
    if arrays.sign < 0:
        everyone = [np.negative(each) for each in everyone]
    if arrays.operation == "broadcast":
        actual, expected = arrays.send, everyone[0]
    elif arrays.operation == "allgatherv":
        actual, expected = arrays.recv, np.concatenate(everyone)
    else:
        fold = {"sum": np.add, "min": np.minimum}[arrays.operation]
        actual, expected = arrays.recv, everyone[0]
        for other in everyone[1:]:
            expected = fold(expected, other)
    same = np.array_equal(actual, expected)
    if not same and not in_rank_order and arrays.operation == "sum":
        same = np.allclose(actual, expected, rtol=1e-14, atol=0)
    if not same:
        raise AssertionError(f"{arrays.operation} of {arrays.send.nbytes} bytes: wrong result")


class Work:
    """The arrays of a case on one rank, for one side, and the calls on these arrays in turn.

    With fresh data, all ranks write new data into the arrays before each row of calls. So no line
    is still in a rank's cache from an earlier read of the same data. The writing is not timed.
    ``sets`` is the number of sets of arrays; 0: more sets than a cache holds.
    """

    def __init__(self, case: Case, side, world, fresh: bool = False, sets: int = 0) -> None:
        self._side, self._world, self._fresh = side, world, fresh
        self._arrays: list[Arrays] = []
        if case.operation == "barrier":
            uses: list[list[Use]] = [[(side.call_of("barrier", None), None)]]
        elif case.operation == "sddp":
            uses = [self._iteration()]
        else:
            counts = [case.nbytes // 8] * world.size
            sets = sets or _sets(case, world.size, fresh)
            uses = [[self._use_of(case.operation, key, counts)] for key in range(sets)]
        self._uses, self._cycle = uses, itertools.cycle(uses)

    def _use_of(self, operation: str, key: int, counts: list[int], dtype=np.float64) -> Use:
        own = self._side.new_recv
        arrays = make_arrays(operation, key, self._world.rank, counts, dtype, own)
        self._arrays.append(arrays)
        return self._side.call_of(operation, arrays), arrays

    def _iteration(self) -> list[Use]:
        """Return the calls of an iteration: trial points, cuts of each stage, bounds; 587 MB."""
        size = self._world.size
        edges = [r * TRAJECTORIES // size for r in range(size + 1)]
        mine = [stop - start for start, stop in itertools.pairwise(edges)]
        points = self._use_of("allgatherv", 0, [STAGES * POINT * n for n in mine])
        cut_counts = [CUT_BYTES * n for n in mine]
        cuts = [self._use_of("allgatherv", key, cut_counts, np.uint8) for key in range(8)]
        bounds = [self._use_of("sum", 0, [4] * size), self._use_of("min", 1, [1] * size)]
        return [points, *itertools.islice(itertools.cycle(cuts), STAGES - 1), *bounds]

    def prepare(self, count: int) -> Block:
        """Return a block of the next ``count`` uses of the operation, in order."""
        uses = [use for each in itertools.islice(self._cycle, count) for use in each]
        if self._fresh:
            return partial(self._renew_and_call, list(rows_of(uses)))
        calls = [call for call, _ in uses]

        def block() -> None:
            for call in calls:
                call()

        return block

    def _renew_and_call(self, rows: list[list[Use]]) -> float:
        """Return the seconds of the calls, without those in which the calls' data is written."""
        seconds = 0.0
        for row in rows:
            for _, arrays in row:
                arrays.renew(self._world.rank)
            self._world.slowest(0.0)  # all ranks have written when this returns
            began = time.perf_counter()
            for call, _ in row:
                call()
            seconds += time.perf_counter() - began
        return seconds

    @property
    def timed(self) -> Side:
        """Return the side that is timed; its warm-up uses all arrays, and tries all ways."""
        return Side(self.prepare, warm=max(len(self._uses), MOST_TRIED), most=MOST_CALLS)

    def verify(self) -> None:
        """Check the results in all arrays, each of which must have been used.

        Then release the memory of the results.
        """
        # Until all ranks have met here, a block may still be on its way into a region.
        self._world.slowest(0.0)
        own = getattr(self._side, "verify", None)  # a side that gives other results has this method
        for arrays in self._arrays:
            if own:
                own(arrays)
            else:
                verify(arrays, self._side.in_rank_order)
        self._arrays.clear()
        self._side.release()


def rows_of(uses: list[Use]) -> Iterator[list[Use]]:
    """Cut uses into rows, so that no row uses the same arrays twice."""
    row: list[Use] = []
    used: set[int] = set()
    for use in uses:
        if id(use[1]) in used:
            yield row
            row, used = [], set()
        row.append(use)
        used.add(id(use[1]))
    if row:
        yield row


def _sets(case: Case, size: int, fresh: bool) -> int:
    if fresh:
        return max(2, min(MOST_FRESH_SETS, FRESH_BYTES // case.nbytes))
    largest = case.nbytes * (1 + size * (case.operation == "allgatherv"))
    fewest = 1 if largest > NO_CACHE_BYTES else 2
    return max(fewest, min(MOST_SETS, ALL_BYTES // largest))
