"""Forked processes: they have all modules of this one, may have their own /dev/shm, and are struck.

A job of forked ranks takes milliseconds, because the kernels are loaded already.
"""

import contextlib
import os
import pickle
import select
import signal
import sys
import traceback
import warnings

import pytest

from tests.campaign.surroundings import die_with_parent, make_private_memory


def fork(act, *args):
    """Start a process that calls a function; return its pid, and a pipe for the result."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():  # of threads, which are those of pytest-xdist: they only wait
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            die_with_parent()
            try:
                found = act(*args)
            except Exception as error:
                error.add_note(traceback.format_exc())
                found = error
            os.write(writer, pickle.dumps(found))
        finally:
            os._exit(0)
    os.close(writer)
    return pid, reader


def outcome(pid, reader, within_s=None):
    """Return the value or the exception of a process, or the negative signal that ended it."""
    with os.fdopen(reader, "rb") as pipe:
        hangs = not select.select([pipe], [], [], within_s)[0]
        if hangs:
            os.kill(pid, signal.SIGKILL)
        found = pipe.read()
    _, status = os.waitpid(pid, 0)
    if hangs:
        return TimeoutError(f"it was busy for {within_s:.0f} s")
    return pickle.loads(found) if found else -os.WTERMSIG(status)


def in_private_shm(size, act, *args):
    """Call a function in a process whose empty /dev/shm has that size; return its value."""

    def alone():
        why_not = make_private_memory(size)
        return why_not, None if why_not else act(*args)

    found = outcome(*fork(alone))
    if isinstance(found, Exception):
        raise found
    why_not, value = found
    if why_not:
        pytest.skip(why_not)
    return value


@contextlib.contextmanager
def struck_at(moment, number):
    """Send this process a signal at its n-th call; yield a list with an entry for each call."""
    calls = []

    def count(frame, event, argument):
        if event in ("call", "c_call"):
            calls.append(None)
            if len(calls) == moment:
                signal.raise_signal(number)

    if moment is not None:
        sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)
