"""Leaders exchange headers by hops, or all to all: which they choose, and that results agree.

Ranks are forks, each a node of its own unless the name of the backend lists nodes. Tests force
hops, or all to all, by replacing the function `pays`, which chooses.
"""

import itertools
import os
import signal
import socket
from pathlib import Path

import numpy as np
import pytest

from cobre_comm import CollectiveFailed
from cobre_comm.backends.tcp import memory
from cobre_comm.backends.tcp.links import UNKNOWN_US, round_trip_us
from cobre_comm.testing.cases.faults import steps, struck
from cobre_comm.testing.cases.faults.strike import signal_in
from cobre_comm.testing.cases.raised import met
from cobre_comm.testing.cases.waiting import wait_until
from cobre_comm.testing.ranks.outcome import values_of
from tests import forked
from tests.campaign.__main__ import warm
from tests.campaign.work import work
from tests.grid import OUR_GRID, slow, some

STEPS = 60
SOON_S = 0.05
LIMIT_S = 1.0
GONE = ""
LAYOUTS = [
    ("tcp-flat", 2), ("tcp-flat", 3), ("tcp-flat", 4), ("tcp-flat", 5), ("tcp-flat", 7),
    ("tcp-flat", 8), ("tcp:0,0,1,1,2", 5), ("tcp:0,0,1,1,2,2x2", 6),
]  # fmt: skip
KINDS = ["killed", "closed", "late", "stopped", "interrupted", "signals", "raised", "exit_at_once"]
SIGNALS = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP, "interrupted": signal.SIGINT}


@pytest.fixture(params=[True, slow(False)], ids=["hops", "all to all"])
def by_hops(request, monkeypatch):
    """Force hops, or all to all, on ranks that are forked later."""
    warm()
    monkeypatch.setattr(memory, "pays", lambda nodes, round_trip: request.param)
    return request.param


# Nodes, the longest round trip in microseconds, and whether hops pay.
@pytest.mark.parametrize(
    ("nodes", "round_trip", "right"),
    [
        (2, 0, False),
        (3, 10, False),
        (4, 6, True),
        (4, 12, False),
        (8, 12, True),
        (8, 25, False),
        (16, 25, True),
        (16, 100, False),
        (50, 100, False),
        (55, 100, True),
        (4096, UNKNOWN_US, False),
    ],
)
def test_choice(nodes, round_trip, right):
    assert memory.pays(nodes, round_trip) == right


def test_round_trip():
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        with server.accept()[0], ours:
            assert 0 < round_trip_us(ours) < UNKNOWN_US


def test_round_trip_of_a_system_that_does_not_tell(monkeypatch):
    monkeypatch.setattr("sys.platform", "darwin")
    with socket.socket() as sock:
        assert round_trip_us(sock) == UNKNOWN_US


def told_to_choose(comm, seen):
    """Return the nodes and round trips by which this rank chose, for the whole and for a part."""
    with comm.split(comm.rank % 2):
        return seen


def test_all_leaders_choose_the_same(monkeypatch):
    seen = []
    monkeypatch.setattr(memory, "pays", lambda *told: seen.append(told) or False)
    told = values_of(forked.ranks("tcp-flat", 4, told_to_choose, seen))
    wholes, parts = zip(*told, strict=True)
    assert len(set(wholes)) == 1
    assert parts[:2] == parts[2:]
    assert all(0 < trip < UNKNOWN_US for _, trip in wholes + parts)


def take_steps(comm, caller):
    for step in itertools.islice(steps.steps(comm.size, comm.size), STEPS):
        steps.take(comm, step, caller)


@pytest.mark.parametrize("caller", ["python", slow("njit")])
@pytest.mark.parametrize(("backend", "size"), some([("tcp-flat", 5)], LAYOUTS))
def test_results(by_hops, backend, size, caller):
    values_of(forked.ranks(backend, size, take_steps, caller))


def differ(comm):
    """Return the errors of this rank in calls where two ranks follow another plan."""
    errors, send = [], np.arange(5.0) + comm.rank
    plans = itertools.pairwise([*PLANS, *PLANS][:5])
    for odd, (first, second) in itertools.product(range(comm.size), plans):
        with comm.split(0) as part:
            plan = PLANS[second if comm.rank in (odd, (odd + 2) % comm.size) else first]
            errors.append(str(met(plan, part, send)))
    return errors


def gather(length):
    def act(comm, send):
        block, counts = np.resize(send, length), [length] * comm.size
        recv = np.empty(length * comm.size)
        comm.allgatherv(block, recv, counts, np.arange(comm.size) * length)

    return act


PLANS = {
    "barrier": lambda comm, send: comm.barrier(),
    "allreduce": lambda comm, send: comm.allreduce(send, np.empty(5)),
    "short": gather(3),
    "long": gather(50_000),
}


@pytest.mark.parametrize("size", [slow(3), 5, slow(8)])
def test_each_rank_names_all_calls_as_without_hops(monkeypatch, size):
    found = []
    for way in (True, False):
        monkeypatch.setattr(memory, "pays", lambda *_, way=way: way)
        found.append(values_of(forked.ranks("tcp-flat", size, differ)))
    by_hops, all_to_all = found
    assert by_hops == all_to_all
    assert all("called" in error for error in by_hops[0])


def state_of(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return GONE


def struck_in_a_hop(comm, kind, victim, late, folder):
    """Strike the victim while it waits for the late rank; return the error of this rank."""
    pids, folder = np.zeros(comm.size, np.int64), Path(folder)
    comm.allgatherv(np.array([os.getpid()]), pids, [1] * comm.size, np.arange(comm.size))
    if comm.rank == victim:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal_in(SOON_S, SIGNALS[kind])
    elif comm.rank == late:
        is_struck = {
            "killed": lambda: state_of(pids[victim]) in ("Z", GONE),
            "stopped": lambda: state_of(pids[victim]) == "T",
            "interrupted": (folder / str(victim)).exists,
        }
        wait_until(is_struck[kind])
    caught = met(comm.barrier) or met(comm.barrier)  # the first barrier may complete on a leader
    (folder / str(comm.rank)).touch()
    if comm.rank == late:
        wait_until(lambda: len(list(folder.iterdir())) >= comm.size - 1)
        if kind == "stopped":
            os.kill(pids[victim], signal.SIGCONT)
    return caught


@pytest.mark.parametrize(
    ("kind", "distance", "size"),
    some(
        [("killed", 1, 5), ("interrupted", 4, 5), ("stopped", 2, 5)],
        [*itertools.product(SIGNALS, (1, 2, 4), (5, 7, 8))],
    ),
)
def test_a_rank_is_struck_in_each_hop(by_hops, kind, distance, size, tmp_path):
    """The victim waits in the hop of ``distance``, because the leader so far before it is late."""
    late, victim = size - 1, (size - 1 + distance) % size
    limits = OUR_GRID.timeout_of(LIMIT_S) if kind == "stopped" else {}
    outcomes = forked.ranks(
        "tcp-flat", size, struck_in_a_hop, kind, victim, late, str(tmp_path), env=limits
    )
    struck_one = outcomes.pop(victim)  # a stopped victim may complete its calls when it continues
    assert (struck_one.exit_code == -signal.SIGKILL) == (kind == "killed")
    assert isinstance(struck_one.value, KeyboardInterrupt) == (kind == "interrupted")
    for caught in values_of(outcomes):
        assert isinstance(caught, CollectiveFailed)
        assert caught.ranks == (victim,), str(caught)


@pytest.mark.parametrize(
    ("kind", "victim", "size"),
    some([("late", 3, 5)], itertools.product(KINDS, (0, 2), (4, 5, 8))),
)
def test_a_rank_is_struck_at_some_moment(by_hops, kind, victim, size, tmp_path):
    limits = {"limit_s": LIMIT_S} if kind in ("late", "stopped") else {}
    fault = struck.complete(struck.at(kind, victim, **limits), size, backend="tcp-flat")
    env = OUR_GRID.timeout_of(LIMIT_S) if limits else {}
    outcomes = forked.ranks("tcp-flat", size, work, "mixed", fault, str(tmp_path), env=env)
    struck.check(fault, outcomes, OUR_GRID.timeout_variable("tcp-flat"))


def two_late(comm, late, folder):
    folder = Path(folder)
    comm.barrier()
    if comm.rank in late:
        wait_until(lambda: len(list(folder.iterdir())) >= comm.size - len(late))
    caught = met(comm.barrier) or met(comm.barrier)
    (folder / str(comm.rank)).touch()
    return caught


@pytest.mark.parametrize("late", [{1, 4}, slow({0, 1}), slow({2, 3, 6})])
def test_all_late_ranks_are_named(by_hops, late, tmp_path):
    limits = OUR_GRID.timeout_of(LIMIT_S)
    told = values_of(forked.ranks("tcp-flat", 7, two_late, late, str(tmp_path), env=limits))
    for rank in set(range(7)) - late:
        assert set(told[rank].ranks) == late, str(told[rank])
