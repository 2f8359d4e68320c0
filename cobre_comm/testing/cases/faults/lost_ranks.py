"""A rank that is gone becomes an exception that names it, on all the others."""

import os
import pathlib
import signal
import sys
import threading
import time

import numpy as np
from numba import njit

from cobre_comm import CollectiveFailed
from cobre_comm.testing.cases.case import BOTH, NEVER, QUICK, Case
from cobre_comm.testing.cases.faults.calling import (
    FORKS,
    OPERATIONS,
    collective,
    meet_failure,
    prepare,
)
from cobre_comm.testing.cases.faults.survivors import SLACK_S, check_survivors, value_of


def wait_for_the_lost(comm, caller, operation, victim, how, pause_s=0.3):
    """The victim goes in some way while the others wait."""
    pids, victim = prepare(comm, caller), victim % comm.size
    if comm.rank != victim:
        return meet_failure(comm, caller, operation, root=victim)
    time.sleep(pause_s)
    sys.stdout.flush()
    if how == "kill":
        os.kill(pids[victim], signal.SIGKILL)
    if how == "term":
        os.kill(pids[victim], signal.SIGTERM)
    if how == "exit":
        sys.exit(0)
    if how == "_exit":
        os._exit(0)
    if how == "close":
        comm.close()
    return time.monotonic()


def killed_in_a_collective(comm, caller, operation, victim):
    """The victim is killed while it waits itself; the last rank does it and never comes."""
    pids = prepare(comm, caller)
    if comm.rank == comm.size - 1:
        time.sleep(0.3)
        os.kill(pids[victim], signal.SIGKILL)
        time.sleep(0.1)
    return meet_failure(comm, caller, operation)


def child_outlives_rank(comm, victim, how, folder):
    """A child of the dead rank that holds its descriptors does not keep it alive."""
    told = pathlib.Path(folder) / "child"
    comm.barrier()
    if comm.rank == victim:
        child = FORKS[how]()
        if child == 0:
            time.sleep(2 * SLACK_S)
            os._exit(0)
        told.write_text(str(child))
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    entered = time.monotonic()
    caught, at, *later = meet_failure(comm, "python", "barrier")
    os.kill(int(told.read_text()), signal.SIGKILL)
    return caught, at - entered, *later


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


EXIT_CODES = {"kill": -9, "term": -15, "exit": 0, "_exit": 0}


def others_name_the_victim(ran):
    operation, victim, how, _ = ran.cell.arguments
    victim %= ran.size
    check_survivors(ran.outcomes, [victim], None, operation)
    if how in EXIT_CODES:
        assert ran.outcomes[victim].exit_code == EXIT_CODES[how], ran.outcomes[victim].describe()


def others_name_the_closed(ran):
    operation, victim, *_ = ran.cell.arguments
    closed_at = ran.outcomes[victim].value
    check_survivors(ran.outcomes, [victim], closed_at, operation)


def others_go_on_or_name_it(ran):
    """The victim was waiting itself, so it took part in that step; the next one has lost it."""
    assert ran.outcomes[0].exit_code == EXIT_CODES["kill"]
    for rank in (1, 2):
        caught, *_ = value_of(ran.outcomes, rank)
        assert caught is None or isinstance(caught, CollectiveFailed)


def parent_is_named(ran):
    check_survivors(ran.outcomes, [1], 0.0, "barrier")


def peer_is_named_in_time(ran):
    killed_at, caught, at = value_of(ran.outcomes, 0)
    assert isinstance(caught, CollectiveFailed)
    assert at - killed_at < 1.0


def case(name, body, over=None, **fields):
    fields = {"where": "watchful", "needs": ("liveness",), "column": "killed", **fields}
    return Case(name, body, over or {}, fresh=True, check=fields.pop("check", NEVER), **fields)


PAUSE = {"pause_s": [0.15]}
CASES = [
    case(
        "killed_while_others_wait", wait_for_the_lost,
        {"operation": OPERATIONS, "victim": [0, 1, -1], "how": ["kill"], **PAUSE}, sizes=(3,),
        expect=others_name_the_victim,
    ),
    case(
        "named_by_the_others_which_wait", wait_for_the_lost,
        {"operation": ["allreduce"], "victim": [-1], "how": ["kill"], **PAUSE}, callers=("njit",),
        sizes=(3,), expect=others_name_the_victim, check=QUICK,
    ),
    case(
        "exit_while_others_wait", wait_for_the_lost,
        {"operation": ["allreduce"], "victim": [1], "how": ["exit", "_exit", "term"], **PAUSE},
        sizes=(3,), expect=others_name_the_victim,
    ),
    case(
        "closed_while_others_wait", wait_for_the_lost,
        {"operation": OPERATIONS, "victim": [2], "how": ["close"], **PAUSE}, sizes=(3,),
        expect=others_name_the_closed, where="points", needs=(),
    ),
    case(
        "killed_in_a_collective", killed_in_a_collective,
        {"operation": ["barrier"], "victim": [0]}, sizes=(3,), expect=others_go_on_or_name_it,
    ),
    case(
        "child_of_a_dead_rank_does_not_keep_it_alive", child_outlives_rank,
        {"victim": [1], "how": [*FORKS]}, folder=True,
        callers=(), sizes=(2,), expect=parent_is_named,
    ),
    case(
        "time_to_detection", kill_and_tell, callers=(*BOTH, "njit that holds the GIL"),
        sizes=(2,), expect=peer_is_named_in_time, tries=5,
    ),
]  # fmt: skip
