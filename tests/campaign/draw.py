"""Draws a fault from a seed and a number; both together give the same fault on every machine."""

import random
from dataclasses import replace

from cobre_kernels.shm.ways import FASTEST, NAMES

from cobre_comm.testing.backend_name import node_of_ranks
from cobre_comm.testing.cases.faults.fault import CLOSE, LAST, START, STEP, Fault
from cobre_comm.testing.cases.faults.judge import SAYS_GOODBYE, promise_of
from cobre_comm.testing.cases.faults.kinds import KINDS, LATE, LOST
from tests.campaign.kinds import ASTRAY, ENDED, FAILED, UNSAID, WHEN

BACKENDS = {
    "shm": 35, "tcp": 15, "tcp-flat": 25, "tcp:0,0,1,1": 4, "tcp:0,0,1,1x2": 4,
    "mpi-openmpi": 6, "mpi-mpich": 6,
    "mpi-openmpi:0,0,1,1": 2, "mpi-mpich:0,0,1,1": 2, "mpi-mpich-net:0,1": 2,
    "mpi-openmpi-net": 1, "mpi-mpich-net": 1,
}  # fmt: skip
STARTS = {"hand": 92, "run": 6, "launch": 2}
RARE = {
    "launcher": 3,
    "tiny_memory": 6,
    "memory": 6,
    "descriptors": 6,
    "suspended": 3,
    "full_stdout": 2,
    "no_descriptor": 6,
    "late_with_pipe": 3,
    "killed_early": 3,
    "threads_first": 4,
}
USUAL = 10
LIMIT_S = 8.0  # for a live rank; long after all that is promised within a second
SHORT_S = 1.5  # longer than a busy machine delays a rank that nothing has struck
START_LIMIT_S = 3.0
ON_ONE_MACHINE = {"tiny_memory": ("shm",), "unauthenticated": ("tcp", "tcp-flat", "tcp:0,0,1,1")}
# Kinds that take from the process what an MPI needs for itself.
NOT_WITH_MPI = {"exec", "descriptors", "memory", "suspended", "tiny_memory", "full_stdout",
                "no_descriptor", "killed_early", "threads_first"}  # fmt: skip
# Kinds that may strike a rank while it calls MPI between nodes: then mpiexec or MPI ends the job.
INSIDE_MPI = {"killed", "terminated", "crashed", "orphan", "orphan_of_libc"}
BY_RUN = {"full_stdout", "killed_early", "threads_first"}
BY_HAND = {
    "descriptors",
    "no_descriptor",
    "memory",
    "tiny_memory",
    "unauthenticated",
    "paused",
}
SMALL = ("COBRE_SHM_BUFFER_BYTES", "COBRE_TCP_BUFFER_BYTES", "COBRE_TCP_EAGER_BYTES")
BUFFERS = ({}, dict.fromkeys(SMALL, "4096"), {"COBRE_TCP_EAGER_BYTES": "0"})
WAITS = ({}, {"COBRE_TEST_PORTABLE_WAIT": "1"}, {"COBRE_COMM_SPIN_US": "8000000"},
         {"COBRE_COMM_SPIN_US": "0"})  # fmt: skip


# Kinds with limits that fit short calls, or with a victim that counts as dead if a call takes
# longer than a poll.
NO_LARGE = {"memory", "tiny_memory", "suspended", "descriptors"}
LARGE_BYTES, MOST_BYTES = 2**16, 2**26  # the least and the most bytes of a large payload
MOST_OF_MANY = 2**23  # the most bytes if there are more than three ranks
BYTES_PER_S = 1e9  # that a large call moves; it moves 2e7 where many processes share few cores


def draw(seed, index):
    """Return the fault that a seed and a number give."""
    dice = random.Random(f"{seed} {index}")
    while True:
        fault = _any(dice)
        if _can_be(fault):
            is_late = promise_of(fault) == LATE
            fault = replace(fault, limit_s=SHORT_S) if is_late else fault
            return _perhaps_large(random.Random(f"{seed} {index} large"), fault)


def _perhaps_large(dice, fault):
    """Return the fault, moved into a large call in half of the cases in which this can be."""
    is_there = fault.moment == STEP and fault.backend in ("shm", "tcp")
    if not is_there or fault.kind in NO_LARGE or dice.random() < 0.5:
        return fault
    most = MOST_BYTES if fault.size <= 3 else MOST_OF_MANY
    large_bytes = int(LARGE_BYTES * (most / LARGE_BYTES) ** dice.random())
    return replace(
        fault, large_bytes=large_bytes, way=dice.randrange(FASTEST, len(NAMES)),
        delay_s=fault.delay_s + dice.uniform(0.0, large_bytes / BYTES_PER_S),
        limit_s=fault.limit_s + large_bytes / BYTES_PER_S * 50,
        env={name: value for name, value in fault.env.items() if name not in SMALL},
    )  # fmt: skip


def _any(dice):
    weights = [RARE.get(name, RARE.get(name.partition("_")[0], USUAL)) for name in WHEN]
    kind = dice.choices(list(WHEN), weights)[0]
    backend = _one_of(dice, BACKENDS)
    size = 4 if ":" in backend else dice.choice([2, 2, 3, 3, 4, 5])
    moments = WHEN[kind]
    moment = STEP if STEP in moments and dice.random() < 0.4 else dice.choice(moments)
    start = _one_of(dice, STARTS)
    if kind.startswith("launcher"):
        start = dice.choice(["run", "run", "launch"])
    elif kind in BY_RUN:
        start = "run"
    elif kind in BY_HAND or backend.startswith("mpi"):
        start = "hand"
    limit_s = LIMIT_S
    if moment == START or kind == "tiny_memory":
        limit_s = START_LIMIT_S
    if kind == "suspended":
        limit_s = 3.0  # a busy machine loads kernels for more than a second
    waits = dice.choices(WAITS, (14, 2, 1, 1))[0]
    return Fault(
        kind=kind, victim=dice.randrange(size), size=size, backend=backend,
        caller=dice.choice(["python", "njit", "mixed"]), moment=moment,
        step=dice.randrange(12), delay_s=_delay(dice, kind, moment),
        lasts_s=limit_s + 0.5 if kind == "suspended" else dice.uniform(0.02, 0.25),
        seed=dice.randrange(2**31), start=start, limit_s=limit_s,
        env={**dice.choice(BUFFERS), **waits},
    )  # fmt: skip


def _delay(dice, kind, moment):
    """Return the seconds from the arming of a fault to its strike."""
    if kind.startswith("launcher"):
        # in this time interpreters start, and ranks meet, work and end
        return dice.uniform(0.0, 3.0)
    if moment == START:
        return dice.choice([dice.uniform(0.0, 0.003), dice.uniform(0.0, 0.06)])
    return dice.choice([dice.uniform(0.0, 0.0003), dice.uniform(0.0, 0.004)])


def _one_of(dice, weights):
    return dice.choices(list(weights), list(weights.values()))[0]


def _can_be(fault):
    if fault.moment == LAST and (fault.start != "hand" or fault.backend.startswith("mpi")):
        return False  # ranks that are not forked from the campaign would compile at that moment
    if fault.backend not in ON_ONE_MACHINE.get(fault.kind, (fault.backend,)):
        return False
    if fault.kind.startswith("two_") and (fault.size == 2 or ":" in fault.backend):
        return False
    if fault.backend.startswith("mpi"):
        return _can_be_with_mpi(fault)
    if fault.start != "hand":
        # A launcher has promises of its own about ranks that end or are left alone. The judge of
        # the campaign knows only some of these promises.
        known = (
            KINDS[fault.kind].promise in (LOST, ASTRAY, ENDED, UNSAID, FAILED)
            or fault.kind in SIMPLE
        )
        return known and fault.moment in (STEP, START)[: 1 + (fault.start == "run")]
    return fault.kind != "astray_root" or fault.size > 1


def _can_be_with_mpi(fault):
    """Tell whether a job over MPI can have the fault.

    MPI starts only with every rank, and no node learns from MPI that a rank elsewhere has died.
    """
    if fault.kind in NOT_WITH_MPI or fault.kind.startswith("launcher"):
        return False
    if fault.moment == START:
        return fault.kind == "signals"
    nodes = node_of_ranks(fault.backend, fault.size)
    if len(set(nodes)) == 1:
        return True
    if fault.kind == "stopped":
        # in a flat communicator, the others wait for data within MPI
        return len(set(nodes)) < fault.size
    if fault.victim != nodes.index(nodes[fault.victim]):  # a follower calls MPI only at the end
        return fault.moment != CLOSE or fault.kind not in INSIDE_MPI
    is_alone = nodes.count(nodes[fault.victim]) == 1
    ends = KINDS[fault.kind].promise == LOST and fault.kind not in SAYS_GOODBYE
    return fault.kind not in INSIDE_MPI and not (is_alone and ends)


SIMPLE = {"threads_first", "signals", "children", "suspended", "launcher_paused", "use_in_child"}
