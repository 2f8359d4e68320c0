"""The log names a rank that is late, but alive: one rank of each node writes a line."""

import contextlib
import logging
import pathlib
import re
import time
from functools import partial

import numpy as np
from numba import njit

from cobre_comm.testing.cases.case import NEVER, Case, Slow
from cobre_comm.testing.cases.faults.calling import collective, prepare
from cobre_comm.testing.cases.faults.late_ranks import suspended
from cobre_comm.testing.cases.faults.survivors import ranks_in

LATE_S = 0.5
LINES = 2  # how many lines each node writes before the late rank arrives
PATIENCE_S = 30.0  # how long the late rank waits for these lines
LINE = re.compile(
    r"(ranks? \d[^:]*?)(, or another rank of its node,)? (?:is|are) late: rank (\d+) has waited "
    r"for ([\d.]+) s in #\d+ (\w+)\(.*\); (.*)"
)


class _Listener(logging.Handler):
    """Keeps the log lines about one operation, and makes a file in a folder for each line."""

    def __init__(self, rank, operation, folder):
        super().__init__()
        self.lines = []
        self._name = f" in #\\d+ {operation}\\("
        self._rank, self._folder = rank, pathlib.Path(folder)

    def emit(self, record):
        line = record.getMessage()
        if re.search(self._name, line):
            self.lines.append((record.levelname, line))
            (self._folder / f"{self._rank}-{len(self.lines)}").touch()


@contextlib.contextmanager
def listening(rank, operation, folder):
    logger, listener = logging.getLogger("cobre_comm"), _Listener(rank, operation, folder)
    logger.addHandler(listener)
    try:
        yield listener.lines
    finally:
        logger.removeHandler(listener)


@njit(cache=True)
def barrier_with_the_gil(comm):
    comm.barrier()


@njit(cache=True)
def fence(region):
    region.fence()


def waited_for(comm, caller, operation, absent, folder):
    """Wait for one rank until each node has logged that it is late; return lines and nodes."""
    prepare(comm, caller)
    local = comm.split_local()
    here = local.min(comm.rank)
    nodes = [int(comm.max(here if comm.rank == rank else -1)) for rank in range(comm.size)]
    awaiting = {nodes[absent]} if operation == "fence" else {*nodes}
    if nodes.count(nodes[absent]) == 1:
        awaiting -= {nodes[absent]}
    with comm.create_shared_region(1) as region:
        (fence if caller == "njit" else fence.py_func)(region)
        barrier_with_the_gil(comm)
        comm.exact_sum(np.ones(1))
        with listening(comm.rank, operation.partition(" ")[0], folder) as lines:
            until = time.monotonic() + PATIENCE_S
            while comm.rank == absent and time.monotonic() < until:
                ranks = [
                    int(path.name.partition("-")[0]) for path in pathlib.Path(folder).iterdir()
                ]
                told = [nodes[rank] for rank in ranks]
                if all(told.count(node) >= LINES for node in awaiting):
                    break
                time.sleep(0.01)
            if operation == "fence":
                (fence if caller == "njit" else fence.py_func)(region)
            elif operation == "barrier with the GIL":
                barrier_with_the_gil(comm)
            else:
                collective(comm, caller, operation, root=absent)
            found = [*lines]
    local.close()
    return found, nodes, awaiting


def told_once_on_each_node(ran):
    operation, absent = ran.cell.arguments
    operation = operation.partition(" ")[0]
    told = {}
    _, nodes, awaiting = ran.values[absent]
    for found, _, _ in ran.values:
        for level, line in found:
            late, of_node, rank, waited_s, call, calls = LINE.fullmatch(line).groups()
            assert (level, call) == ("WARNING", operation)
            named = absent if nodes[int(rank)] == nodes[absent] else nodes[absent]
            assert named in ranks_in(late), line
            assert bool(of_node) <= (nodes.count(nodes[absent]) > 1), line
            assert f"rank {named}, its last calls: " in calls or "cannot be read here" in calls, (
                line
            )
            told.setdefault(nodes[int(rank)], []).append(float(waited_s))
    assert set(told) == awaiting
    for waits in told.values():
        assert len(waits) >= LINES
        # If two ranks of a node wrote lines, the lines of the second rank would come too early.
        for number, waited_s in enumerate(sorted(waits)):
            assert waited_s > 0.99 * LATE_S * 2**number, sorted(waits)


def lines_of_suspended(comm, caller, pause_s, folder):
    with listening(comm.rank, "allreduce", folder) as lines:
        suspended(comm, caller, pause_s)
        return [*lines]


def none_was_late(ran):
    assert not any(ran.values), ran.values


case = partial(Case, needs=("lines",), fresh=True, check=NEVER, folder=True)
CASES = [
    case(
        "waited_for", waited_for,
        {
            "operation": [
                "barrier", "fence",
                *map(Slow, ("allreduce", "broadcast", "allgatherv", "barrier with the GIL")),
            ],
            "absent": [1, Slow(0)],
        },
        sizes=(4,), late_s=LATE_S, expect=told_once_on_each_node,
    ),
    case(
        "suspended_job", lines_of_suspended, {"pause_s": [Slow(3.0)]}, sizes=(3,), late_s=2,
        expect=none_was_late,
    ),
]  # fmt: skip
