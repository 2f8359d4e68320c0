"""Problems with the types of arguments in ``@njit`` code, and the errors that they become.

The errors have the same notes as the errors in Python (``arguments/mistakes.py``). numba makes an
exception by calling a class with constants. A class of this module returns a plain ``TypeError`` or
``ValueError`` from this call.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from cobre_comm.arguments.mistakes import Mistake, explained


class WrongType(TypeError):
    """A call with a sentence and a word makes a ``TypeError`` that has a note with the word."""

    def __new__(cls, *values: Any) -> TypeError:  # type: ignore[misc]  # see the class
        """Return the error."""
        return _made(TypeError, values)


class WrongValue(ValueError):
    """A call with a sentence and a word makes a ``ValueError`` that has a note with the word."""

    def __new__(cls, *values: Any) -> ValueError:  # type: ignore[misc]  # see the class
        """Return the error."""
        return _made(ValueError, values)


def _made(kind: type[Mistake], values: tuple[Any, ...]) -> Mistake:
    if isinstance(values[0], kind):  # CPython calls again, with this very error
        return values[0]
    sentence, word = values
    return explained(kind(sentence), word)


class Problem(NamedTuple):
    """What is wrong with the type of an argument."""

    sentence: str  # the text of the error
    word: str  # the word for ``cobre-comm explain``
    # The class of the error that is raised with sentence and word.
    error: type[WrongType | WrongValue] = WrongType
