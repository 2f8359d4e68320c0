"""The launcher's file descriptors: the inherited ones, and how many it may have."""

from __future__ import annotations

import errno
import os
import resource

STDIN, STDOUT, STDERR = 0, 1, 2
SPARE_DESCRIPTORS = 64  # for all but the ranks


def allow(needed: int) -> None:
    """Raise the limit of open files to ``needed``, if it is lower; ``OSError`` if it cannot be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= needed or soft == resource.RLIM_INFINITY:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise OSError(errno.EMFILE, f"{needed} open files are needed, `ulimit -n` allows {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def open_standard() -> None:
    """Open /dev/null as each of stdin, stdout and stderr that is closed, before a pipe takes it."""
    for descriptor in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
