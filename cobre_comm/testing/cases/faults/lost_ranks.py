"""A rank is killed while another rank waits for it in compiled code that holds the GIL."""

import os
import signal
import threading
import time

import numpy as np
from numba import njit

from cobre_comm import CollectiveFailed
from cobre_comm.testing.cases.case import NEVER, Case
from cobre_comm.testing.cases.faults.calling import prepare
from cobre_comm.testing.cases.faults.survivors import SLACK_S, check_calls


@njit(cache=True)
def _reduce_with_the_gil(comm, send, recv):
    comm.allreduce(send, recv)


def kill_and_tell(comm):
    """Rank 0 waits for rank 1; meanwhile a thread of rank 0 kills rank 1."""
    pids, arrays = prepare(comm, "python"), (np.ones(5), np.zeros(5))
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
        _reduce_with_the_gil(comm, *arrays)
    except CollectiveFailed as error:
        caught, at = error, time.monotonic()
    thread.join()
    return caught, at - killed_at[0]


def peer_is_named(ran):
    caught, took_s = ran.outcomes[0].value
    check_calls(caught, [1])
    assert took_s < SLACK_S


CASES = [
    Case(
        "killed_while_the_gil_is_held", kill_and_tell, callers=(), sizes=(2,),
        expect=peer_is_named, where="watchful", needs=("liveness", "njit"), column="killed",
        fresh=True, check=NEVER,
    ),
]  # fmt: skip
