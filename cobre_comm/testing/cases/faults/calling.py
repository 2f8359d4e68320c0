"""Calls of one collective by its name, and the errors that a rank gets when it fails."""

import ctypes
import os
import time

import numpy as np

from cobre_comm import InvalidCommunicator
from cobre_comm.testing.cases.calls import OPERATIONS, arguments, calls
from cobre_comm.testing.cases.raised import met

# A C library forks without Python's hooks.
FORKS = {"python": os.fork, "libc": ctypes.PyDLL(None).fork}


def collective(comm, caller, operation, length=5, *, root=0, **keywords):
    """Call one collective with valid arguments."""
    if operation == "split":
        comm.split(root)
    else:
        given = arguments(comm, operation, length, root=root, **keywords)
        getattr(calls(caller, comm.rank), operation)(comm, *given)


def prepare(comm, caller, *others):
    """Compile all collectives and meet, so that only waiting follows; return all pids."""
    for name in [*OPERATIONS, *others]:
        collective(comm, caller, name)
    pids = np.zeros(comm.size, dtype=np.int64)
    tables = np.ones(comm.size, np.int64), np.arange(comm.size)
    comm.allgatherv(np.array([os.getpid()]), pids, *tables)
    return [int(pid) for pid in pids]


def meet_failure(comm, caller, operation, **arguments):
    """Return a collective's error, its time, the errors of later calls, and their seconds."""
    caught, at = met(collective, comm, caller, operation, **arguments), time.monotonic()
    if caught is None:
        return None, at, None, 0.0
    later, began = [], time.monotonic()
    for name in OPERATIONS:
        try:
            collective(comm, caller, name)
        except InvalidCommunicator as error:
            later.append(str(error))
    return caught, at, later, time.monotonic() - began
