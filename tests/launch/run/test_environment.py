import os
import re

import pytest

from cobre_comm.common.cores import usable_cores
from cobre_comm.processes.environment import THREAD_VARIABLES, rank_environment
from cobre_comm.processes.job import Job
from tests.launch.command import COMMAND, PROGRAMS, cobre, lines_of

ACT = PROGRAMS / "act.py"


def told(done, rank):
    return dict(line.split("=", 1) for line in lines_of(done.stdout, rank) if "=" in line)


def test_what_ranks_are_told():
    foreign = {"SLURM_PROCID": "5", "OMPI_COMM_WORLD_SIZE": "9", "COBRE_TCP_COORDINATOR": "there",
               "COBRE_SHM_RANK": "7", "COBRE_COMM_BACKEND": "mpi"}  # fmt: skip
    done = cobre("run", "-n", 2, "--timeout", "7.5", ACT, "environment", **foreign)
    both = [told(done, rank) for rank in range(2)]
    assert re.fullmatch(rf"/cobre-{os.getuid()}-[0-9a-f]+", both[0]["COBRE_SHM_NAME"])
    assert len(both[0]["COBRE_SHM_NAME"]) <= 30
    assert both[0]["COBRE_SHM_NAME"] == both[1]["COBRE_SHM_NAME"]
    assert both[0]["COBRE_JOB_ID"] == both[1]["COBRE_JOB_ID"]
    for rank, environment in enumerate(both):
        assert environment["COBRE_COMM_BACKEND"] == "shm"
        assert environment["COBRE_SHM_RANK"] == str(rank)
        assert environment["COBRE_SHM_SIZE"] == "2"
        assert environment["COBRE_SHM_TIMEOUT_SECS"] == "7.5"
        assert environment["PYTHONUNBUFFERED"] == "1"
        assert not environment.keys() & {"SLURM_PROCID", "OMPI_COMM_WORLD_SIZE"}
        assert not [name for name in environment if name.startswith("COBRE_TCP_")]
        for name in THREAD_VARIABLES:
            assert environment[name] == str(max(1, usable_cores() // 2))


def test_what_the_user_set_stays():
    user = {"OMP_NUM_THREADS": "3", "COBRE_SHM_TIMEOUT_SECS": "99", "COBRE_COMM_SPIN_US": "5"}
    environment = rank_environment(Job(4, "shm"), 1, user, bound=True)
    assert user.items() <= environment.items()
    assert environment["NUMBA_NUM_THREADS"] == "1"


def test_bound_ranks_are_told_whether_to_spin():
    cores = usable_cores()
    alone = rank_environment(Job(cores, "shm"), 0, {}, bound=True)
    crowded = rank_environment(Job(cores + 1, "shm"), 0, {}, bound=True)
    assert (alone["COBRE_COMM_SPIN_US"], crowded["COBRE_COMM_SPIN_US"]) == ("30", "0")
    assert "COBRE_COMM_SPIN_US" not in rank_environment(Job(cores, "shm"), 0, {})


def test_names_and_secrets_differ_from_job_to_job():
    jobs = [Job(2, "shm") for _ in range(50)]
    assert len({job.shm_name for job in jobs}) == len({job.token for job in jobs}) == 50
    assert jobs[0].token not in repr(jobs[0])


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot bind")
def test_bind_core():
    cores = sorted(os.sched_getaffinity(0))
    done = cobre("run", "-n", 3, "--bind", "core", ACT, "affinity")
    for rank in range(3):
        assert lines_of(done.stdout, rank) == [f"cores [{cores[rank % len(cores)]}]"]
    done = cobre("run", "-n", 2, "--bind", "none", ACT, "affinity")
    assert lines_of(done.stdout, 0) == [f"cores {cores}"]


def test_interpreter_flags_are_passed_on():
    before = [COMMAND[0], "-X", "dev", "-X", "int_max_str_digits=5000", "-W", "error::UserWarning",
              *COMMAND[1:]]  # fmt: skip
    done = cobre("run", "-n", 2, ACT, "flags", before=before)
    assert done.returncode == 0, done.stderr
    [line] = lines_of(done.stdout, 0)
    assert line.startswith("True ")
    assert "error::UserWarning" in line
    assert line.endswith(f" 5000 __main__ {ACT} {ACT.parent}")


def test_a_module_runs_as_python_would_run_it():
    done = cobre("run", "-n", 2, "-m", "tests.launch.programs.act", "exit", 1)
    assert done.returncode == 3
    done = cobre("run", "-n", 2, "-m", "json.tool", "--help")
    assert lines_of(done.stdout, 1)[0].startswith("usage:")
    assert done.returncode == 0
