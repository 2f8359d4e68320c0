"""Ctrl-C in a program that waits in ``launch``."""

from __future__ import annotations

import sys
from types import TracebackType


def interrupted(size: int) -> KeyboardInterrupt:
    """Return what ``launch`` raises; where nothing catches it, Python prints one line for it.

    A traceback would end inside the wait for the workers, of which it says nothing. A program that
    has an excepthook of its own, and a notebook, show it as they do.
    """
    error = KeyboardInterrupt(f"launch has ended its {size} ranks")
    if sys.excepthook is sys.__excepthook__:

        def one_line(
            kind: type[BaseException], value: BaseException, trace: TracebackType | None
        ) -> None:
            if value is error:
                print(f"KeyboardInterrupt: {error}", file=sys.stderr)
            else:
                sys.__excepthook__(kind, value, trace)

        sys.excepthook = one_line
    return error
