"""The start time of a process, by which it differs from another one of the same number."""

from __future__ import annotations

import pathlib

UNKNOWN = 0


def start_time(pid: int) -> int:
    """Return the start time of a process, in clock ticks since boot; UNKNOWN if not to be read."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return UNKNOWN
    return int(stat.rpartition(b")")[2].split()[19])  # the name before the ")" has any bytes
