"""The signals that ask a job to stop, instead of ending it."""

from __future__ import annotations

import signal
from collections.abc import Iterable

VARIABLE = "COBRE_COMM_GRACEFUL"
ASKING = ("SIGTERM", "SIGUSR1", "SIGUSR2", "SIGINT", "SIGHUP", "SIGQUIT")
FORWARDED = frozenset(signal.Signals[name] for name in ASKING)  # a launcher forwards each of these


def graceful_signals(chosen: str | Iterable[int | str]) -> frozenset[int]:
    """Return the numbers of signals, given as names or numbers, or as a text with commas.

    ``ValueError`` is raised for a name or number that is no signal of ``ASKING``.

    >>> sorted(graceful_signals("SIGTERM, SIGINT"))
    [2, 15]
    """
    given = chosen.split(",") if isinstance(chosen, str) else list(chosen)
    names = [each.strip() if isinstance(each, str) else _name_of(each) for each in given]
    for name in filter(None, names):
        if name not in ASKING:
            raise ValueError(
                f"{name} cannot ask to stop; choose from {', '.join(ASKING)}, by graceful=... or "
                f"{VARIABLE}=SIGTERM,SIGUSR1"
            )
    return frozenset(int(signal.Signals[name]) for name in filter(None, names))


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return repr(number)
