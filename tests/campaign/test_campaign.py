"""A few faults of the campaign are tried every day, and some minutes of it in `make test-all`."""

from functools import partial

import pytest

from cobre_comm.testing.cases.faults.fault import STEP, Fault
from cobre_comm.testing.cases.faults.kinds import KINDS
from tests.campaign.__main__ import alone, main
from tests.campaign.draw import SHORT_S, draw
from tests.command import python
from tests.forked import each
from tests.grid import skip_unless_here, some


def test_a_number_is_always_the_same_fault():
    assert draw(7, 11) == draw(7, 11) != draw(7, 12)
    assert {draw(1, index).kind for index in range(2000)} == set(KINDS)


@pytest.mark.slow
def test_each_kind_over_shared_memory_and_sockets():
    """In these jobs a node has two ranks; in the table of cases (TestStruck) each node has one."""
    words = "--each", "--start", "hand", "--backend", "shm", "--backend", "tcp:"
    done = python("-m", "tests.campaign", *words, within_s=None)
    assert "0 misses" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_minutes_of_faults():
    words = "--faults", "100000", "--minutes", "2", "--seed", "5"
    python("-m", "tests.campaign", *words, within_s=None)


def test_a_process_that_ends_is_a_miss(monkeypatch, capsys):
    """A campaign fails if one of its own processes fails."""
    monkeypatch.setattr("tests.campaign.__main__.warm", lambda: None)
    monkeypatch.setattr("tests.campaign.__main__.perform", lambda *_: 1 / 0)
    monkeypatch.setattr("tests.campaign.surroundings.stretch", lambda: 1.0)
    assert main(["--faults", "3"]) == 1
    assert "MISS" in capsys.readouterr().out


# The backend, and the rank that is stopped. Rank 3 is a follower that has not fetched the outcome
# of a broadcast; its leader is the root, and does not wait until followers have fetched. Rank 0 is
# a leader, and is late for the ranks of its own node and for the other nodes.
STOPPED = [("mpi-openmpi", 3), ("tcp", 0)]
EACH = [(name, victim) for name in ("tcp", "mpi-openmpi", "mpi-mpich") for victim in range(4)]


@pytest.mark.parametrize(("backend", "victim"), some(STOPPED, EACH))
def test_a_rank_of_a_node_is_stopped(backend, victim):
    fault = Fault(
        kind="stopped", victim=victim, size=4, backend=f"{skip_unless_here(backend)}:0,0,1,1",
        caller="python", moment=STEP, step=1, delay_s=0.00015, seed=1677125871, limit_s=SHORT_S,
    )  # fmt: skip
    [(_, result)] = each(partial(alone, margin_s=2.0), [(0, fault)], workers=1)
    assert not result.verdict.problems, result
    # The victim's error names the ranks that have given the victim up, and not the victim itself.
    assert victim not in result.accounts[victim]["caught"]["ranks"]
