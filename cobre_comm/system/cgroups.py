"""The control groups of Linux that contain this process, and how much memory they leave.

Sources: cgroups(7); Linux, admin-guide/cgroup-v2.rst and admin-guide/cgroup-v1/memory.rst.
"""

from __future__ import annotations

import contextlib
import pathlib
import sys
from collections.abc import Iterator

ROOT = pathlib.Path("/sys/fs/cgroup")
OWN = pathlib.Path("/proc/self/cgroup")
# The files of a limit and of a use, and the fields of memory that the kernel can free if needed.
_V2 = ("memory.max", "memory.current", ("inactive_file", "active_file", "slab_reclaimable"))
_V1_FILES = ("total_inactive_file", "total_active_file")
_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", _V1_FILES)


def groups(controller: str) -> Iterator[pathlib.Path]:
    """Yield the folders of the groups that contain this process, the outermost last.

    In a container, the outermost visible group is often that of the container itself.
    """
    with contextlib.suppress(OSError):  # not on Linux
        for line in OWN.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            root = ROOT / controller if controllers else ROOT
            own = pathlib.PurePosixPath(path.lstrip("/"))
            yield from (root / folder for folder in (own, *own.parents))


def memory_left() -> int:
    """Return how many bytes the limits of this process's groups leave."""
    return min(map(_memory_left, groups("memory")), default=sys.maxsize)


def _memory_left(group: pathlib.Path) -> int:
    for limit, used, given_back in (_V2, _V1):
        with contextlib.suppress(OSError, ValueError):  # no file in this cgroup version, or "max"
            left = int((group / limit).read_text()) - int((group / used).read_text())
            stat = (line.split() for line in (group / "memory.stat").read_text().splitlines())
            return max(0, left + sum(int(value) for name, value in stat if name in given_back))
    return sys.maxsize
