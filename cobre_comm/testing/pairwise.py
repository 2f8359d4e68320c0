"""Chooses few combinations that together have every pair of values; each run chooses the same."""

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
    """Return the numbers of few rows that together have every combination of values of all rows.

    A row has a value for each of its factors. Most faults show with one value of one factor, or
    with values of two factors together, whatever the other factors are. So the chosen rows together
    have every combination of ``strength`` values that some row has: 1 means every value, 2 every
    pair. A factor in ``alone`` is in no combination: only each of its values is needed, and a row
    may lack the factor. The rows ``given`` are chosen in any case. Among rows that add equally many
    new combinations, those in ``last`` are chosen last.
    """
    parts = [set(_parts(row, strength, alone)) for row in rows]
    missing = set().union(*parts).difference(*(parts[number] for number in given))
    chosen = set(given)
    # Among rows that add equally many new combinations, chance decides, so that the values outside
    # these combinations are mixed too.
    chance = random.Random(0)
    heap = [(-len(p), n in last, chance.random(), n) for n, p in enumerate(parts)]
    heapq.heapify(heap)
    while missing:
        # A row's gain can only shrink. So if the first row still has its gain, no row adds more.
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
