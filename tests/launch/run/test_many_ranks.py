"""Many ranks: equal tracebacks are printed once, and all ranks have time to end after Ctrl-C."""

import os
import signal

import pytest

from cobre_comm.processes.escalation import END_S, GRACE_S, where_crowded
from cobre_comm.run.last_lines import MOST_TEXTS, _in_few
from cobre_comm.run.output.interrupts import Sieve
from cobre_comm.system.cores import usable_cores
from tests.launch.command import PROGRAMS, Running, cobre, lines_of

MANY = 64
LONG_S = 300  # the time that so many ranks need on two busy cores
HEAD = "Traceback (most recent call last):"

PROGRAM = """
import os, signal, sys
from cobre_comm import create_communicator
with create_communicator() as comm:
    comm.barrier()
    if sys.argv[1] == "own words":
        raise ValueError(f"bad case of rank {comm.rank}")
    if comm.rank == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    comm.barrier()
"""


@pytest.fixture
def program(written):
    return written(PROGRAM)


def trace(*lines):
    return [HEAD, *lines]


def test_texts_that_begin_alike_are_shown_once_where_they_are_many():
    few = [([rank], trace("  here", f"Error: {rank}")) for rank in range(MOST_TEXTS)]
    assert _in_few(few) == {f"rank {rank}": text for [rank], text in few}
    many = [*few, ([8, 9], trace("  here", "Error: 8")), ([10], trace("  there", "Error: 10"))]
    told = _in_few(many, last=4)
    assert list(told.items()) == [
        ("rank 10", trace("  there", "Error: 10")),
        ("rank 4 (those of ranks 0-3 and 5-9 begin alike)", trace("  here", "Error: 4")),
    ]


def test_a_sieve_takes_out_whole_tracebacks_of_ctrl_c_alone():
    text = f"{HEAD}\n  File one\nKeyboardInterrupt\n".encode()
    other = f"{HEAD}\n  File two\nValueError: no\n".encode()
    sieve = Sieve()
    assert sieve.sift(text) == text
    sieve.is_on = True
    assert sieve.sift(b"before\n" + text + b"after\n" + other) == b"before\nafter\n" + other
    assert sieve.taken == text
    half = text[: text.index(b"Key")]
    assert sieve.sift(half) == b""
    assert sieve.rest() == half
    assert sieve.rest() == b""


def test_ranks_that_share_cores_have_more_time_to_end():
    cores = usable_cores()
    assert where_crowded(GRACE_S, cores) == where_crowded(GRACE_S, 1) == GRACE_S
    assert where_crowded(GRACE_S, 33 * cores) == GRACE_S + 32 * END_S


def test_tracebacks_with_texts_of_each_ranks_own_are_few(program):
    done = cobre("run", "-n", MOST_TEXTS + 2, program, "own words")
    assert done.returncode == 1
    # A second traceback is that of ranks that the launcher ended before they failed.
    assert done.stderr.count(HEAD) <= 2, done.stderr
    assert "begin alike):" in done.stderr


FREEZES = """
import atexit, gc, sys
from cobre_comm import create_communicator
atexit.register(lambda: print("frozen", gc.get_freeze_count() > 10_000))
with create_communicator() as comm:
    comm.barrier()
if sys.argv[1] == "raise":
    raise ValueError("the end")
"""


@pytest.mark.parametrize(("ends_by", "frozen"), [("raise", True), ("return", False)])
def test_the_last_collections_of_a_failed_rank_look_at_few_objects(ends_by, frozen, tmp_path):
    (tmp_path / "ends.py").write_text(FREEZES)
    done = cobre("run", "-n", 2, tmp_path / "ends.py", ends_by)
    assert [lines_of(done.stdout, rank) for rank in range(2)] == [[f"frozen {frozen}"]] * 2


@pytest.mark.slow
@pytest.mark.timeout(2 * LONG_S)
def test_the_death_of_one_of_many_ranks_is_told_in_few_lines(program):
    done = cobre("run", "-n", MANY, program, "death", within_s=LONG_S)
    assert done.returncode == 128 + signal.SIGKILL
    assert "rank 3 died (its process has ended)" in done.stderr
    assert len(done.stderr.splitlines()) <= 40, done.stderr


@pytest.mark.slow
@pytest.mark.timeout(2 * LONG_S)
def test_ctrl_c_ends_many_ranks_in_few_lines():
    with Running("run", "-n", MANY, PROGRAMS / "act.py", "sleep") as job:
        job.wait_ready(MANY)
        os.kill(job.process.pid, signal.SIGINT)
        code, _, errors = job.finish(LONG_S)
        assert code == 128 + signal.SIGINT
        assert "killed" not in errors
        assert errors.count("KeyboardInterrupt") == 1
        assert f"the last words of ranks 0-{MANY - 1}:" in errors
        assert job.survivors() == []
