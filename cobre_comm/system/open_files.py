"""The limit on the number of descriptors of this process."""

from __future__ import annotations

import contextlib
import errno
import resource

SPARE_DESCRIPTORS = 64  # for other files of the process, and a few connections


def raise_limit(wanted: int) -> int:
    """Raise the limit of open files to ``wanted``, if it is lower; return the limit, or ``wanted``.

    The result is the lower of the two, because the system may refuse so high a limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(ValueError, OSError):  # macOS has a second limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return wanted if soft == resource.RLIM_INFINITY else min(soft, wanted)


def allow(needed: int) -> None:
    """Raise the limit of open files to ``needed``, if it is lower; ``OSError`` if it cannot be."""
    limit = raise_limit(needed)
    if limit < needed:
        raise OSError(errno.EMFILE, f"{needed} open files are needed, `ulimit -n` allows {limit}")
