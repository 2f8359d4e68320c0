"""A clock for waits in Python, which stands still while this process does not run.

The waits of the kernels have the same clock (``cobre_kernels/collective/waiting/patience.py``). So
time in which a job, a container or a machine was suspended does not count as waiting.
"""

from __future__ import annotations

import time

TICK_S = 0.05  # a wait reads the clock at least this often
STALL_S = 0.5  # a longer time between two readings counts as one tick

_last = time.monotonic()
_left_out_s = 0.0


def running_s(*, has_run: bool = False) -> float:
    """Return ``time.monotonic()`` minus the gaps between readings that were far apart.

    Only the difference of two results has a meaning: the time from the beginning of a wait until
    the wait reads the clock again. With ``has_run``, all time since the last reading counts,
    because this process was busy since then.
    """
    global _last, _left_out_s  # one clock for all waits of this process
    # There is no lock, because a fork could leave it locked. So two threads may leave out one gap
    # twice.
    now = time.monotonic()
    if now - _last > STALL_S and not has_run:
        _left_out_s += now - _last - TICK_S
    _last = now
    return now - _left_out_s
