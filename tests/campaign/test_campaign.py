"""A few faults of the campaign every day, some minutes of it in the full product."""

import subprocess
import sys

import pytest

from cobre_comm.testing.cases.faults.fault import STEP, Fault
from cobre_comm.testing.cases.faults.kinds import KINDS
from tests.campaign.__main__ import main
from tests.campaign.draw import SHORT_S, draw
from tests.campaign.job import end_warm_ranks, perform


def campaign(*words):
    return subprocess.run(
        [sys.executable, "-m", "tests.campaign", *words], capture_output=True, text=True
    )


def test_a_number_is_always_the_same_fault():
    assert draw(7, 11) == draw(7, 11) != draw(7, 12)
    assert {draw(1, index).kind for index in range(2000)} == set(KINDS)


def test_each_kind_over_shared_memory_and_sockets():
    """With nodes of two ranks; the conformance table has every rank alone (TestStruck)."""
    done = campaign("--each", "--start", "hand", "--backend", "shm", "--backend", "tcp:")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 misses" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_minutes_of_faults():
    done = campaign("--faults", "100000", "--minutes", "4", "--seed", "5")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_worker_that_ends_is_a_miss(monkeypatch, capsys):
    """A campaign whose own processes fail does not pass."""
    monkeypatch.setattr("tests.campaign.__main__.warm", lambda: None)
    monkeypatch.setattr("tests.campaign.__main__.serve", lambda *_: 1 / 0)
    monkeypatch.setattr("tests.campaign.surroundings.stretch", lambda: 1.0)
    assert main(["--faults", "3"]) == 1
    assert "MISS" in capsys.readouterr().out


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_a_follower_stops_before_it_fetches_the_outcome(mpi):
    """Its leader, the root of a broadcast, waits for nothing else by then."""
    fault = Fault(
        kind="stopped", victim=3, size=4, backend=f"mpi-{mpi}:0,0,1,1", caller="python",
        moment=STEP, step=1, delay_s=0.00015, seed=1677125871, limit_s=SHORT_S,
    )  # fmt: skip
    try:
        result = perform(0, fault, margin_s=2.0)
    finally:
        end_warm_ranks()
    assert not result.verdict.problems, result
