"""The launcher's file descriptors: the inherited ones, and how many it may have."""

from __future__ import annotations

import errno
import os
import resource

STDIN, STDOUT, STDERR = 0, 1, 2
SPARE_DESCRIPTORS = 64  # for all but the ranks


def allow(needed: int) -> None:
    """Raise this process's limit of open files where that is needed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= needed or soft == resource.RLIM_INFINITY:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise OSError(errno.EMFILE, f"{needed} open files are needed, `ulimit -n` allows {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def open_standard() -> None:
    """Put /dev/null where ``<&-`` or ``>&-`` left a hole that a pipe of ours would fill."""
    for descriptor in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
