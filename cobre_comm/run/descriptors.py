"""How many file descriptors the launcher may have."""

from __future__ import annotations

import errno
import resource

SPARE_DESCRIPTORS = 64  # for all but the ranks


def allow(needed: int) -> None:
    """Raise the limit of open files to ``needed``, if it is lower; ``OSError`` if it cannot be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= needed or soft == resource.RLIM_INFINITY:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise OSError(errno.EMFILE, f"{needed} open files are needed, `ulimit -n` allows {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
