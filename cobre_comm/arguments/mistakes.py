"""Sentences about wrong calls, for Python and ``@njit`` code, and where each error is explained.

An error of this package has a section with the name of its class. ``TypeError`` and ``ValueError``
are Python's own classes, so such an error names a section in the page of common mistakes, by a word
of the section's title: ``cobre-comm explain list``.
"""

from __future__ import annotations

from typing import TypeVar

LIST = "list"  # each of these is a word of one title of docs/howto/mistakes.md
SUBCLASS = "subclass"
REGION = "region"  # a region in place of an array
WORK = "work"  # a work over which compiled code loops
OBJECTS = "objects"
CONTIGUOUS = "contiguous"
DTYPE = "dtype"
OUTPUT = "output"  # an output that is read-only
COUNTS = "counts"
INTEGER = "integer"
OP = "ReduceOp"
LAUNCH = "launch"  # what launch cannot send

RECV_HINT = "recv needs size * send.size elements"
REGION_IS_CLOSED = "this shared region is closed; create another one"
WORK_IS_CLOSED = "this work is closed; create another one"
WORK_IS_RESET = (
    "another thread of this rank resets this work, or did during the claim; let all threads of the "
    "rank finish their claims before one resets"
)

Mistake = TypeVar("Mistake", TypeError, ValueError)


def explained(error: Mistake, word: str) -> Mistake:
    """Return the error with a last line that names the section with its cause and cure."""
    error.add_note(f"more: cobre-comm explain {word}")
    return error


def outside_region(start: int, stop: int, length: int) -> ValueError:
    """Return the error of a part that is not inside a region."""
    said = f"part [{start}, {stop}) is not inside a region of length {length}"
    if stop < start:
        said += "; the second number is where the part ends, and no number of rows"
    return ValueError(said)
