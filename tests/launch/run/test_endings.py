import itertools
import re
import subprocess

import pytest

from cobre_comm.processes.endings import (
    STARTER,
    Ending,
    describe,
    exit_status,
    first_failure,
    with_abort,
)
from cobre_comm.processes.guardian import has_signal
from cobre_comm.reports import stack_signal
from cobre_comm.reports.report_pipe import Report
from cobre_comm.run.last_lines import last_words
from tests.grid import some
from tests.launch.command import PROGRAMS, SOON_S, Running, cobre, lines_of
from tests.launch.mpi_libraries import on

ACT, HANG = (PROGRAMS / f"{name}.py" for name in ("act", "hang"))


def lost(rank, *ranks):
    return Ending(rank, 1, 1.0, Report("Error", "", "Traceback", 1, ranks))


@pytest.mark.quick
@pytest.mark.parametrize(
    ("action", "status", "words"),
    [
        ("exit", 3, "rank 1 exited with code 3"),
        ("kill", 137, "rank 1 was ended by signal 9 (SIGKILL); signal 9 is also what the kernel's"),
    ],
)
def test_first_failure_ends_the_job_with_its_code(action, status, words, tmp_path):
    with Running("run", "-n", 3, ACT, action, 1, tmp_path / "go") as job:
        job.wait_ready(2)
        (tmp_path / "go").touch()
        code, _, errors = job.finish(SOON_S)
        assert code == status
        assert errors.splitlines()[-1].startswith(f"cobre-comm: {words}")
        assert job.survivors() == []


@pytest.mark.quick
def test_one_rank_alone_has_its_code_too():
    done = cobre("run", "-n", 1, ACT, "exit", 0)
    assert done.returncode == 3
    assert done.stderr == "cobre-comm: rank 0 exited with code 3\n"


def test_a_rank_may_finish_before_the_others():
    done = cobre("run", "-n", 3, ACT, "finish", 0)
    assert (done.returncode, done.stderr) == (0, "")
    assert lines_of(done.stdout, 1) == lines_of(done.stdout, 2) == ["still here"]


@pytest.mark.quick
def test_the_first_primary_failure_is_the_cause():
    assert first_failure([Ending(0, 0, 1.0)]) is None
    killed = Ending(1, -9, 1.1)
    assert first_failure([lost(0, 1), killed]) is killed
    assert first_failure([Ending(0, 1, 1.0), Ending(1, -9, 1.0)]).rank == 1
    assert first_failure([Ending(0, 1, 1.0), Ending(1, 1, 0.5)]).rank == 1
    assert first_failure([lost(0, 2), lost(2, 1, 2)]).rank == 2, "rank 2 is at fault itself"
    assert first_failure([Ending(STARTER, 1, 0.5), lost(0, 1)]).rank == 0, "mpiexec knows no cause"
    assert exit_status(-15) == 143
    assert describe(Ending(2, 5, 0.0)) == "rank 2 exited with code 5"


@pytest.mark.quick
def test_mpi_abort_ends_mpiexec_with_its_code():
    starter, killed = Ending(STARTER, 5, 2.0), Ending(1, -9, 1.9)
    assert with_abort([killed], starter) == [Ending(1, 5, 1.9)]
    assert with_abort([killed, lost(0, 1)], starter) == [killed, lost(0, 1), starter]
    assert with_abort([Ending(0, 0, 1.0)], starter)[-1] is starter
    assert first_failure(with_abort([killed], Ending(STARTER, -9, 1.0))) is killed


@pytest.mark.quick
def test_last_words_are_the_reported_traceback_or_the_end_of_stderr():
    assert last_words(lost(0, 1), b"noise\n") == ["Traceback"]
    assert last_words(Ending(0, 1, 1.0), b"10%\r20%\r30%\n\n") == ["30%"]


LATE = r"allreduce failed: rank 2 did not come within [\d.]+ s; if that is only slow, raise "
CALLS = r"rank 2, its last calls: #\d+ barrier\(\) returned [\d.]+ s ago; "
ASKED = r"cobre-comm: rank 2 still runs; where in its Python code, or in compiled code that the fir"
WHERE = r"cobre-comm: the last words of rank 2, which did not come:\n( {4}.*\n)*"
STEPS = rf'      File "{HANG}", line \d+ in <module>\n'
ENTERED = r"barrier\(\) entered [\d.]+ s ago"
OTHERWISE = r"ranks disagree: ranks 0, 1 and 3 called allreduce\(.*; rank 2 called barrier"
WOKEN = (
    r"barrier failed: ranks? [013](, 1)?( and [13])? "
    r"(raised cobre_comm.errors.CollectiveFailed: allreduce failed: ran"
    r"|closed (its communicator|their communicators))"
)
HANGS = {
    "sleeps": [LATE, CALLS, ASKED, WHERE + STEPS],
    "computes": [LATE, CALLS, ASKED, WHERE + STEPS],
    "disagrees": [OTHERWISE, rf"rank 2, its last calls: #\d+ {ENTERED}"],
    # The first other rank that raises or ends wakes rank 2, perhaps before the calls of rank 2 are
    # read.
    "deadlocks": [rf"{CALLS}.*; in communicator 1, of 4 ranks: #1 {ENTERED}|{WOKEN}"],
}
DAILY = [("sleeps", "python", "tcp-flat"), ("deadlocks", "python", "shm")]
ALL = itertools.product(HANGS, ("python", "njit"), ("shm", "tcp", "tcp-flat"))
# If each node is one rank, no node has a communicator of several ranks in which rank 2 could wait.
APART = [(what, *rest) for what, *rest in ALL if (what, rest[-1]) != ("deadlocks", "tcp-flat")]


@pytest.mark.parametrize(("what", "caller", "backend"), some(DAILY, APART))
def test_a_rank_that_does_not_come_is_told_with_its_calls_and_its_line(what, caller, backend):
    option, variables = on(backend)
    done = cobre("run", "-n", 4, *option, "--timeout", 4, HANG, what, caller, **variables)
    for pattern in HANGS[what]:
        assert re.search(pattern, done.stderr), (pattern, done.stderr)


def test_a_process_that_does_not_listen_is_not_asked_where_it_is():
    with subprocess.Popen(["sleep", "60"]) as process:
        assert not has_signal(process.pid, "SigCgt:", stack_signal.NUMBER)
        assert process.poll() is None
        process.kill()


@pytest.mark.quick
def test_what_a_rank_says_is_not_read(tmp_path):
    done = cobre("run", "-n", 2, ACT, "boast", tmp_path / "first")
    assert done.returncode == 3
