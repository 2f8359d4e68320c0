"""A few faults of the campaign every day, some minutes of it in the full product."""

import subprocess
import sys

import pytest

from cobre_comm.testing.cases.faults.kinds import KINDS
from tests.campaign.__main__ import main
from tests.campaign.draw import draw


def campaign(*words):
    return subprocess.run(
        [sys.executable, "-m", "tests.campaign", *words], capture_output=True, text=True
    )


def test_a_number_is_always_the_same_fault():
    assert draw(7, 11) == draw(7, 11) != draw(7, 12)
    assert {draw(1, index).kind for index in range(2000)} == set(KINDS)


def test_each_kind_over_shared_memory_and_sockets():
    done = campaign("--each", "--start", "hand", "--backend", "shm", "--backend", "tcp")
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
