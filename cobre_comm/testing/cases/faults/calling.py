"""Calls of a collective by its name, and the errors that a rank gets when the collective fails."""

import ctypes
import os
import time

import numpy as np

from cobre_comm import InvalidCommunicator
from cobre_comm.testing.cases.calls import OPERATIONS, arguments, calls
from cobre_comm.testing.cases.raised import met

_libc_fork = ctypes.PyDLL(None, use_errno=True).fork


def _fork_of_libc():
    """Fork as a C library does, without Python's hooks."""
    child = _libc_fork()
    if child < 0:
        raise OSError(ctypes.get_errno(), "fork")
    return child


FORKS = {"python": os.fork, "libc": _fork_of_libc}


def are_refused_in_child(fork, *calls):
    """Fork a child that makes some calls; return whether each call is refused with an error."""
    child = FORKS[fork]()
    if child == 0:
        errors = [met(call) for call in calls]
        is_told = [isinstance(e, InvalidCommunicator) and "forked" in str(e) for e in errors]
        os._exit(not all(is_told))
    return os.waitpid(child, 0)[1] == 0


def collective(comm, caller, operation, length=5, *, root=0, **keywords):
    """Call one collective with valid arguments."""
    if operation == "split":
        comm.split(root)
    else:
        given = arguments(comm, operation, length, root=root, **keywords)
        getattr(calls(caller, comm.rank), operation)(comm, *given)


def prepare(comm, caller, *others):
    """Compile all collectives and meet, so that later time is waiting alone; return all pids."""
    for name in [*OPERATIONS, *others]:
        collective(comm, caller, name)
    pids = np.zeros(comm.size, dtype=np.int64)
    tables = np.ones(comm.size, np.int64), np.arange(comm.size)
    comm.allgatherv(np.array([os.getpid()]), pids, *tables)
    return [int(pid) for pid in pids]


def meet_failure(comm, caller, operation, **arguments):
    """Call a collective that fails; return its error, the time, later calls' errors and seconds."""
    caught, at = met(collective, comm, caller, operation, **arguments), time.monotonic()
    return caught, at, *([None, 0.0] if caught is None else later_errors(comm, caller))


def later_errors(comm, caller):
    """Return each collective's error on a broken communicator, and the seconds that all took."""
    began = time.monotonic()
    errors = [met(collective, comm, caller, name) for name in OPERATIONS]
    return [f"{type(error).__name__}: {error}" for error in errors], time.monotonic() - began


def are_refused(later, cause=""):
    """Whether each later collective failed, with an error that names the first cause."""
    return len(later) == len(OPERATIONS) and all(
        text.startswith("InvalidCommunicator") and cause in text for text in later
    )
