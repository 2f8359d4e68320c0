"""``check_signals``: lets Ctrl-C end a long loop of the user's in ``@njit`` code."""

from __future__ import annotations

from cobre_comm.contract import numba_types


def check_signals() -> None:
    """Run the handlers of signals that have arrived; for long loops of ``@njit`` code.

    Python runs no handler while compiled code runs, so Ctrl-C would wait for the end of the loop.
    Collectives poll for signals by themselves. A call of ``check_signals`` takes some nanoseconds.
    Without the GIL (``nogil=True``) it reads the clock, and polls every 50 ms. In any thread but
    the main thread it does nothing, because Python runs handlers in the main thread alone.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C. After another signal, the exception that its handler raises. In ``@njit``
        code, ``except Exception`` catches both.

    Examples
    --------
    >>> from numba import njit
    >>> from cobre_comm import check_signals
    >>> @njit(nogil=True)
    ... def solve(steps):
    ...     for _ in range(steps):
    ...         check_signals()
    >>> solve(1000)
    """


numba_types.register()
