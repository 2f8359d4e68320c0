"""An open file that is closed when its last holder is gone."""

from __future__ import annotations

import contextlib
import functools
import operator
import os
from collections.abc import Callable


class Descriptor:
    """An open file that is closed when its last holder is gone, wherever an interrupt arrives.

    Python runs signal handlers between any two of its own steps. So the call that opens the file
    also puts the number into the list ``_numbers`` within one step, and the call that closes the
    file takes it from there within one step. If a handler raises within a ``__del__`` that is
    written in Python, the exception is lost, so ``__del__`` is a call in C.

    ``opens`` is a function in C that opens a file and returns its number; ``arguments`` are the
    arguments of this function.
    """

    def __init__(self, opens: Callable[..., int], *arguments: object) -> None:
        self._numbers: list[int | None] = [None]
        self._close = functools.partial(any, map(os.close, iter(self._numbers.pop, None)))
        self._numbers.extend(map(opens, *((argument,) for argument in arguments)))

    @property
    def number(self) -> int:
        """The number of the descriptor; -1 when it is closed."""
        number = self._numbers[-1] if self._numbers else None
        return -1 if number is None else number

    def close(self) -> None:
        """Close the file; idempotent."""
        with contextlib.suppress(OSError):  # the program has closed the file itself
            self._close()

    __del__ = property(operator.attrgetter("_close"))
