import os
import re
import signal

import pytest

from cobre_comm.processes.endings import Ending, describe_loss, of_survivors
from cobre_comm.reports.report_pipe import Report
from tests.launch.command import PROGRAMS, SOON_S, Running, cobre

SURVIVES, RESTARTS = PROGRAMS / "survives.py", PROGRAMS / "restarts.py"
RUN = "run", "-n", 3, "--survive"


def gone_on(output):
    """Return, for each rank that has continued, the rank that was lost."""
    found = re.findall(r"\[(\d)\] goes on without \((\d),\)", output)
    return {int(rank): int(lost) for rank, lost in found}


@pytest.mark.parametrize(
    ("number", "lost", "backend"),
    [(signal.SIGKILL, 1, "shm"), (signal.SIGTERM, 0, "tcp"), (signal.SIGSEGV, 0, "shm")],
)
def test_survivors_go_on_and_the_loss_is_told_once(number, lost, backend):
    with Running(*RUN, "--backend", backend, SURVIVES) as job:
        os.kill(job.wait_ready(3)[lost][0], number)
        code, output, errors = job.finish(SOON_S)
        assert code == 0
        assert gone_on(output) == {rank: lost for rank in range(3) if rank != lost}
        name = f"signal {number:d} ({signal.Signals(number).name})"
        said = f"cobre-comm: rank {lost} was ended by {name}; the other ranks go on\n"
        assert errors == said
        assert job.survivors() == []


def test_a_loss_before_the_ranks_have_met_is_a_failure_of_the_job():
    """No rank waits for its limit, and no other rank is named in place of the lost one."""
    done = cobre(*RUN, "--backend", "tcp", PROGRAMS / "early.py")
    assert done.returncode == 128 + signal.SIGKILL
    assert "rank 1 was ended by signal 9 (SIGKILL)" in done.stderr.splitlines()[-1]
    assert "go on" not in done.stderr
    # The launcher ends rank 0 a moment before rank 2, so rank 2 may report that rank 0 has ended.
    told = done.stderr.replace("rank 0 ended before all ranks had attached", "")
    assert "rank 0" not in told, "rank 0 has had no time to give up"


def test_ctrl_c_after_a_loss_ends_the_job():
    with Running(*RUN, PROGRAMS / "wait.py", "python") as job:
        os.kill(job.wait_ready(3)[2][0], signal.SIGKILL)
        assert "rank 2" in job.process.stderr.readline()
        job.process.send_signal(signal.SIGINT)
        code, output, _ = job.finish(SOON_S)
        assert code == 130
        assert "interrupted 0" in output
        assert job.survivors() == []


@pytest.mark.parametrize(("actor", "way"), [(1, "raise"), (1, "kill")])
def test_a_job_whose_survivors_fail_is_started_again(actor, way, tmp_path):
    words = "run", "-n", 2, "--survive", "--max-restarts", 1
    done = cobre(*words, RESTARTS, tmp_path, way, actor, 1)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"\[0\] attempt (\d) on 2", done.stdout) == ["0", "1"]
    assert "the job is started again in 1 s, on 2 ranks (restart 1 of 1)" in done.stderr


def test_survivors_come_before_a_restart():
    done = cobre(*RUN, "--max-restarts", 1, SURVIVES, 1)
    assert done.returncode == 0
    assert gone_on(done.stdout) == {0: 1, 2: 1}
    assert "cobre-comm: the last words of rank 1:\n    Traceback" in done.stderr
    assert "started again" not in done.stderr


@pytest.mark.quick
def test_mpi_is_refused(refusal):
    said = refusal(["run", "-n", 2, "--survive", "--backend", "mpi", SURVIVES])
    assert "--survive is for shm and tcp: mpiexec ends all ranks once one is lost" in said


@pytest.mark.quick
def test_who_survives():
    killed, done = Ending(0, -9, 1.0), Ending(1, 0, 2.0)
    raised = Ending(2, 1, 3.0, Report("a.Error", "x\ny", "Traceback", 1))
    follows = Ending(3, 1, 4.0, Report("a.Error", "", "Traceback", 1, (0,)))
    aborted = Ending(4, 7, 4.0, aborts=True)
    assert of_survivors([killed, done, raised, follows, aborted]) == [done, follows, aborted]
    assert of_survivors([killed, raised]) == [killed, raised]
    assert describe_loss(raised) == "rank 2 raised a.Error: x"
    assert describe_loss(killed) == "rank 0 was ended by signal 9 (SIGKILL)"
