"""How many cores this process may use, and how long a wait may keep a core busy."""

from __future__ import annotations

import contextlib
import os
import pathlib
import sys

from cobre_comm.system import cgroups

SPIN_US = 30.0  # how long a wait spins if every rank has a core

_QUOTA_AND_PERIOD = (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us"))  # cgroups v2, v1


def usable_cores() -> int:
    """Return the number of cores that affinity and cgroup quotas allow this process."""
    return min(len(core_numbers()), quota_cores())


def have_cores(ranks: int, told_us: float | None = None, cores: int | None = None) -> bool:
    """Return whether each of ``ranks`` ranks of this machine has a core.

    ``cores`` is the number of cores that the ranks may use together; by default, those of this
    process. ``told_us`` is the spin of a wait that the launcher or the user has set; 0 says that
    ranks share cores. A bound rank sees only its own cores, but its launcher knows all cores. So if
    ``told_us`` is not None, it decides.
    """
    if told_us is not None:
        return told_us > 0
    return ranks <= (usable_cores() if cores is None else cores)


def spin_us(
    ranks: int,
    told_us: float | None = None,
    longest_us: float = SPIN_US,
    cores: int | None = None,
) -> float:
    """Return the microseconds that a wait spins: as told, or SPIN_US if each rank has a core.

    If ranks share cores, a spin would keep another rank from running, so the result is 0.
    """
    if told_us is not None:
        return told_us
    return longest_us if have_cores(ranks, cores=cores) else 0.0


def quota_cores() -> int:
    """Return the smallest quota, in cores, of the cgroups that contain this process."""
    return min(map(_quota, cgroups.groups("cpu")), default=sys.maxsize)


def core_numbers() -> list[int]:
    """Return the numbers of the cores on which this process may run, ascending."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _quota(cgroup: pathlib.Path) -> int:
    for names in _QUOTA_AND_PERIOD:
        with contextlib.suppress(OSError, ValueError):  # no file in this cgroup version, or "max"
            words = " ".join((cgroup / name).read_text() for name in names).split()
            quota, period = map(int, words)
            if quota > 0:
                return max(1, quota // period)
    return sys.maxsize
