"""A choice of few combinations that hold every pair of values: greedy, always the same."""

from __future__ import annotations

import heapq
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations


def choose(
    rows: Sequence[Mapping[str, str]],
    strength: int = 2,
    given: Collection[int] = (),
    alone: Collection[str] = (),
    last: Collection[int] = (),
) -> set[int]:
    """Return the numbers of few rows that together hold every combination of values of all rows.

    Most faults show with one value or with two together, for any values of the others. A row has
    the values of its factors, of which ``strength`` are combined: 1 for every value, 2 for every
    pair. Every value of a factor that is ``alone`` is needed, and no combination with others; not
    every row has it. The rows ``given`` are chosen in any case. Of rows that add as much, those of
    ``last`` are chosen last.
    """
    parts = [set(_parts(row, strength, alone)) for row in rows]
    missing = set().union(*parts).difference(*(parts[number] for number in given))
    chosen = set(given)
    # Of rows that add as much, one by chance: values that need not be combined are mixed so.
    chance = random.Random(0)
    heap = [(-len(p), n in last, chance.random(), n) for n, p in enumerate(parts)]
    heapq.heapify(heap)
    while missing:
        # What a row adds only shrinks: the first whose gain still holds adds the most.
        _, is_last, order, number = heapq.heappop(heap)
        gain = len(parts[number] & missing)
        if heap and gain < -heap[0][0]:
            heapq.heappush(heap, (-gain, is_last, order, number))
        else:
            chosen.add(number)
            missing -= parts[number]
    return chosen


def _parts(
    row: Mapping[str, str], strength: int, alone: Collection[str]
) -> Iterator[tuple[tuple[str, str], ...]]:
    combined = sorted(item for item in row.items() if item[0] not in alone)
    yield from combinations(combined, min(strength, len(combined)))
    yield from (((name, row[name]),) for name in alone if name in row)
