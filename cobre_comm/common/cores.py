"""How many cores this process may use."""

from __future__ import annotations

import os
import pathlib
import sys

_QUOTA = pathlib.Path("/sys/fs/cgroup/cpu.max")


def usable_cores() -> int:
    """Return how many cores this process may use: affinity and cgroup quota (v2) both count."""
    return min(len(core_numbers()), quota_cores())


def quota_cores() -> int:
    """Return how many cores the cgroup (v2) gives to its processes together."""
    try:
        quota, period = _QUOTA.read_text().split()
        return max(1, int(quota) // int(period))
    except (OSError, ValueError):  # no cgroup v2, or "max"
        return sys.maxsize


def core_numbers() -> list[int]:
    """Return the numbers of the cores this process may run on, ascending."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
