"""Groups equal failures of ranks, so that each is shown once, with the names of its ranks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

T = TypeVar("T")


def alike(
    failures: Mapping[int, T], key: Callable[[T], Hashable] = lambda each: each
) -> list[tuple[list[int], T]]:
    """Return one failure for each key, with all ranks of this key, in the order of ``failures``."""
    ranks: dict[Hashable, list[int]] = {}
    for rank, each in failures.items():
        ranks.setdefault(key(each), []).append(rank)
    return [(sorted(numbers), failures[numbers[0]]) for numbers in ranks.values()]
