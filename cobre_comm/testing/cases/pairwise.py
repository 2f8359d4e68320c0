"""Few of many combinations that still hold every pair of values: greedy, the same in every run."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations


def choose(
    rows: Sequence[Mapping[str, str]], strength: int = 2, given: Collection[int] = ()
) -> set[int]:
    """Return the numbers of rows in which every combination of values occurs that is in any row.

    Most faults show with one value or with two together, for any values of the others.

    Parameters
    ----------
    rows : sequence of mapping
        For each the values of its factors.
    strength : int
        How many factors are combined: 1 for every value, 2 for every pair.
    given : collection of int
        Rows that are chosen in any case.
    """
    parts = [set(combinations(sorted(row.items()), min(strength, len(row)))) for row in rows]
    missing = set().union(*parts).difference(*(parts[number] for number in given))
    chosen = set(given)
    # What a row adds only shrinks: the first whose gain still holds adds the most.
    heap = [(-len(part), number) for number, part in enumerate(parts)]
    heapq.heapify(heap)
    while missing:
        _, number = heapq.heappop(heap)
        gain = len(parts[number] & missing)
        if heap and gain < -heap[0][0]:
            heapq.heappush(heap, (-gain, number))
        else:
            chosen.add(number)
            missing -= parts[number]
    return chosen
