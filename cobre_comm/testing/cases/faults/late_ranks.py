"""The error names a rank that is later than the limit, and the variable of the limit."""

import pathlib
import subprocess
import time
from functools import partial

from cobre_comm import CommError
from cobre_comm.testing.cases.calls import COLLECTIVES
from cobre_comm.testing.cases.case import NEVER, Case, Slow
from cobre_comm.testing.cases.faults.calling import collective, meet_failure, prepare
from cobre_comm.testing.cases.faults.survivors import check_calls, check_later, check_timeout
from cobre_comm.testing.cases.raised import met
from cobre_comm.testing.cases.waiting import wait_until

LIMIT_S = 0.5


def late(comm, caller, operation, absent, folder):
    """The absent ranks arrive when all others have given up; they get an error too."""
    prepare(comm, caller, operation)
    told, began = pathlib.Path(folder), time.monotonic()
    if comm.rank in absent:
        wait_until(lambda: len(list(told.iterdir())) >= comm.size - len(absent))
    caught, at, later, took = meet_failure(comm, caller, operation, root=min(absent))
    (told / str(comm.rank)).touch()
    if caught is None:  # all ranks made this call, but some have given up since
        caught = met(collective, comm, caller, "barrier")
    return caught, at - began, later, took


def no_limit(comm, pause_s):
    """With a timeout of 0, the other rank waits for rank 0 without a limit."""
    comm.barrier()
    if comm.rank == 0:
        time.sleep(pause_s)
    comm.barrier()


def suspended(comm, caller, pause_s):
    """While rank 0 computes and the others wait, all are stopped for longer than the limit."""
    pids = " ".join(map(str, prepare(comm, caller)))
    if comm.rank == 0:
        with subprocess.Popen(
            ["sh", "-c", f"sleep 0.3; kill -STOP {pids}; sleep {pause_s}; kill -CONT {pids}"]
        ):
            for _ in range(8):
                time.sleep(0.1)  # only running time counts for the eight sleeps
    for _ in range(10):
        collective(comm, caller, "allreduce")


def least_named(rank, absent, nodes):
    """Return sets of absent ranks; an error names all ranks of some set (docs/guarantees.md)."""
    missing, told = {}, {}
    for node in set(nodes):
        missing[node] = {each for each in absent if nodes[each] == node}
        leader = nodes.index(node)
        told[node] = {leader} if leader in missing[node] else missing[node]
    if missing[nodes[rank]]:
        return [missing[nodes[rank]]]
    reporting = [node for node in told if 0 < len(missing[node]) < nodes.count(node)]
    return [told[node] for node in reporting] or [set().union(*told.values())]


def absent_are_named(ran):
    operation, absent = ran.cell.arguments
    nodes = ran.settings.nodes(ran.backend, ran.size)
    for rank in absent:
        assert isinstance(ran.values[rank][0], CommError), f"rank {rank} came late, and went on"
    for rank in set(range(ran.size)) - set(absent):
        caught, waited_s, later, took = ran.values[rank]
        check_timeout(caught, ran.settings.timeout_variable(ran.backend))
        named, least = set(caught.ranks), least_named(rank, absent, nodes)
        assert named <= set(absent)
        assert any(each <= named for each in least), f"rank {rank} named {named} of {least}"
        assert caught.operation == operation
        check_calls(caught, caught.ranks)
        assert waited_s > 0.9 * LIMIT_S
        check_later(later, took, str(caught))


case = partial(Case, needs=("timeouts",), fresh=True, check=NEVER)
CASES = [
    case(
        "timeout", late,
        {
            "operation": COLLECTIVES,
            "absent": [(1, 3), Slow((0,)), Slow((1, 2, 3))],
        },
        sizes=(4,), limit_s=LIMIT_S, folder=True, expect=absent_are_named,
    ),
    case("no_limit", no_limit, {"pause_s": [1.0]}, callers=(), sizes=(2,), limit_s=0),
    case("suspended_job", suspended, {"pause_s": [3.0]}, sizes=(3,), limit_s=2),
]  # fmt: skip
