"""The start time of a process, which distinguishes it from a later process of the same number."""

from __future__ import annotations

import pathlib

UNKNOWN = 0


def start_time(pid: int) -> int:
    """Return the start time of a process, in clock ticks since boot; UNKNOWN if not readable."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return UNKNOWN
    return int(stat.rpartition(b")")[2].split()[19])  # the name before the ")" may have any bytes
