"""How soon the death of a rank is known, on a machine that has nothing else to do."""

import os
import signal
import threading
import time

import numpy as np
from numba import njit

from cobre_comm import CollectiveFailed
from cobre_comm.testing.cases.case import BOTH, NEVER, Case
from cobre_comm.testing.cases.faults.calling import collective, prepare
from cobre_comm.testing.cases.faults.survivors import check_calls


@njit(cache=True)
def _reduce_with_the_gil(comm, send, recv):
    comm.allreduce(send, recv)


def kill_and_tell(comm, caller):
    """Rank 0 has its peer killed by a thread while it waits for it itself."""
    pids = prepare(comm, "python" if "GIL" in caller else caller)
    arrays = np.ones(5), np.zeros(5)
    if "GIL" in caller:
        _reduce_with_the_gil(comm, *arrays)  # compiles
    if comm.rank == 1:
        time.sleep(60)
    killed_at = []

    def kill():
        time.sleep(0.5)
        killed_at.append(time.monotonic())
        os.kill(pids[1], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        if caller == "njit that holds the GIL":
            _reduce_with_the_gil(comm, *arrays)
        else:
            collective(comm, caller, "allreduce")
    except Exception as error:
        caught, at = error, time.monotonic()
    thread.join()
    return killed_at[0], caught, at


def peer_is_named_in_time(ran):
    killed_at, caught, at = ran.outcomes[0].value
    assert isinstance(caught, CollectiveFailed)
    assert at - killed_at < 1.0
    check_calls(caught, [1])


CASES = [
    Case(
        "time_to_detection", kill_and_tell, callers=(*BOTH, "njit that holds the GIL"),
        sizes=(2,), expect=peer_is_named_in_time, tries=5, where="watchful", needs=("liveness",),
        column="killed", fresh=True, check=NEVER,
    ),
]  # fmt: skip
