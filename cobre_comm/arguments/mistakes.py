"""Errors of wrong arguments that name their section of the page of common mistakes.

``TypeError`` and ``ValueError`` are Python's own, so these classes have no section of their own, as
the errors of this package have. A word of its title finds a section: ``cobre-comm explain list``.
"""

from __future__ import annotations

from typing import TypeVar

LIST = "list"  # each is a word of one title of docs/howto/mistakes.md
SUBCLASS = "subclass"
REGION = "region"  # in place of an array
WORK = "work"  # that compiled code loops over
OBJECTS = "objects"
CONTIGUOUS = "contiguous"
DTYPE = "dtype"
OUTPUT = "output"  # that is read-only
COUNTS = "counts"
INTEGER = "integer"
OP = "ReduceOp"
LAUNCH = "launch"  # and what it cannot send
WORDS = (
    LIST,
    SUBCLASS,
    REGION,
    WORK,
    OBJECTS,
    CONTIGUOUS,
    DTYPE,
    OUTPUT,
    COUNTS,
    INTEGER,
    OP,
    LAUNCH,
)

Mistake = TypeVar("Mistake", TypeError, ValueError)


def explained(error: Mistake, word: str) -> Mistake:
    """Return the error with a last line that says where cause and cure are."""
    error.add_note(f"more: cobre-comm explain {word}")
    return error
