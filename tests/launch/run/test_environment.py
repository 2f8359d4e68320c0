import os
import re
import sys

import pytest

from cobre_comm.backends.shm.buffers import choose_buffer_bytes
from cobre_comm.config import ShmConfig
from cobre_comm.errors import CollectiveFailed
from cobre_comm.processes.binding import Binding
from cobre_comm.processes.environment import CONNECT_TIMEOUT_MS, THREAD_VARIABLES, rank_environment
from cobre_comm.processes.job import Job
from cobre_comm.reports import report_pipe
from cobre_comm.reports.launcher import LIMIT_VARIABLE
from cobre_comm.system import cgroups, cores
from cobre_comm.system.cores import usable_cores
from cobre_comm.testing.cases.waiting import wait_until
from tests.forked import ranks
from tests.launch.command import COMMAND, PROGRAMS, cobre, lines_of

ACT = PROGRAMS / "act.py"
BOUND = Binding(1, ((0,), (1,), (0,), (1,)))


TOKEN = "0123456789abcdef"
FOREIGN = {"SLURM_PROCID": "5", "OMPI_COMM_WORLD_SIZE": "9", "COBRE_COMM_BACKEND": "mpi",
           "COBRE_JOB_ID": "outer",
           "COBRE_SHM_NAME": "/other", "COBRE_SHM_RANK": "7", "COBRE_TCP_COORDINATOR": "elsewhere",
           "COBRE_TCP_PORT": "1", "COBRE_TCP_RANK": "9", "COBRE_TCP_SIZE": "99",
           "COBRE_TCP_TOKEN": "known", "COBRE_TCP_BIND_ADDR": "0.0.0.0"}  # fmt: skip
TUNING = {"COBRE_TCP_EAGER_BYTES": "77", "COBRE_COMM_SPIN_US": "7"}
ALWAYS = {"COBRE_JOB_ID": "cobre-.+", "COBRE_RESTART": "0", "PYTHONUNBUFFERED": "1", **TUNING}
ALWAYS |= dict.fromkeys(THREAD_VARIABLES, str(max(1, usable_cores() // 2)))
ON_SHM = {
    "COBRE_COMM_BACKEND": "shm",
    "COBRE_SHM_NAME": rf"/cobre-{os.getuid()}-[0-9a-f]{{,20}}",
    "COBRE_SHM_RANK": "{rank}",
    "COBRE_SHM_SIZE": "2",
    "COBRE_SHM_TIMEOUT_SECS": "7.5",
}
ON_TCP = {
    "COBRE_COMM_BACKEND": "tcp",
    "COBRE_TCP_COORDINATOR": "127.0.0.1",
    "COBRE_TCP_BIND_ADDR": "127.0.0.1",
    "COBRE_TCP_PORT": "[0-9]{4,5}",
    "COBRE_TCP_RANK": "{rank}",
    "COBRE_TCP_SIZE": "2",
    "COBRE_TCP_TOKEN": "[0-9a-f]{64}",
    "COBRE_TCP_TIMEOUT_SECS": "2.5",
}
ON_NODE_1 = ON_TCP | {
    "COBRE_TCP_COORDINATOR": "::1",
    "COBRE_TCP_BIND_ADDR": "::1|0.0.0.0",
    "COBRE_TCP_PORT": "4000",
    "COBRE_TCP_SIZE": "4",
    "COBRE_TCP_TOKEN": TOKEN,
    "COBRE_TCP_CONNECT_TIMEOUT_MS": CONNECT_TIMEOUT_MS,
}
NODE_1 = ["--nnodes", 2, "--node-rank", 1, "--coordinator", "[::1]:4000"]


@pytest.mark.parametrize(
    ("words", "ranks", "expected", "gone"),
    [
        (["--timeout", "7.5"], (0, 1), ON_SHM, "COBRE_TCP_(?!EAGER|TIMEOUT)"),
        (["--backend", "tcp", "--timeout", "2.5"], (0, 1), ON_TCP, "COBRE_SHM"),
        (["--timeout", "2.5", *NODE_1], (2, 3), ON_NODE_1, "COBRE_SHM"),
    ],
    ids=["shm", "tcp", "a node of two"],
)
def test_what_ranks_are_told(words, ranks, expected, gone):
    given = FOREIGN | TUNING | {"COBRE_TCP_TIMEOUT_SECS": "50", "NUMBA_DISABLE_JIT": "1"}
    if "--nnodes" in words:
        given["COBRE_TCP_TOKEN"] = TOKEN
    done = cobre("run", "-n", 2, *words, ACT, "environment", **given)
    every = [dict(line.split("=", 1) for line in lines_of(done.stdout, rank)) for rank in ranks]
    for rank, told in zip(ranks, every, strict=True):
        for name, value in (ALWAYS | expected).items():
            assert re.fullmatch(value.replace("{rank}", str(rank)), told[name]), name
        unwanted = rf"SLURM_PROCID|OMPI_COMM_WORLD_SIZE|{gone}"
        assert not [name for name in told if re.match(unwanted, name)]
    assert len({told["COBRE_JOB_ID"] for told in every}) == 1
    for name, value in expected.items():
        assert "{rank}" in value or len({told[name] for told in every}) == 1, name


@pytest.mark.parametrize(
    ("launcher", "job", "cure"),
    [
        ("cobre-comm run", Job(2, "shm", 3.0), "raise --timeout (seconds"),
        ("launch", Job(2, "shm", 3.0), "raise timeout of launch (seconds"),
        ("cobre-comm run", Job(2, "shm"), "raise COBRE_SHM_TIMEOUT_SECS (seconds"),
    ],
)
def test_an_error_names_what_the_user_has_given(launcher, job, cure, monkeypatch, tmp_path):
    """If the launcher has set a variable, the error names the launcher's option or argument."""
    told = rank_environment(job, 0, {})
    given = {name: "1" for name in told if name == LIMIT_VARIABLE}
    monkeypatch.setattr(report_pipe, "_launcher", launcher)
    env = {"COBRE_SHM_TIMEOUT_SECS": "0.1", **given}
    first, _ = ranks("shm", 2, is_late, tmp_path / "over", env=env)
    assert cure in first.value


def is_late(comm, over):
    if comm.rank:
        return wait_until(over.exists)
    with pytest.raises(CollectiveFailed) as caught:
        comm.barrier()
    over.touch()
    return str(caught.value)


def test_what_the_user_set_stays():
    user = {"OMP_NUM_THREADS": "3", "COBRE_SHM_TIMEOUT_SECS": "99", "COBRE_COMM_SPIN_US": "5"}
    environment = rank_environment(Job(4, "shm"), 1, user, BOUND)
    assert user.items() <= environment.items()
    assert environment["NUMBA_NUM_THREADS"] == "1"


def test_bound_ranks_are_told_whether_to_spin():
    count = usable_cores()
    alone = rank_environment(Job(count, "shm"), 0, {}, BOUND)
    crowded = rank_environment(Job(count + 1, "shm"), 0, {}, BOUND)
    assert (alone["COBRE_COMM_SPIN_US"], crowded["COBRE_COMM_SPIN_US"]) == ("30", "0")
    assert "COBRE_COMM_SPIN_US" not in rank_environment(Job(count, "shm"), 0, {})


def test_bound_ranks_take_the_buffers_of_ranks_with_cores():
    """A bound rank sees its own core alone; its spin time says whether each rank has a core."""
    ranks = usable_cores() + 1
    every = [ShmConfig(name="/n", rank=0, size=ranks, spin_us=told) for told in (30.0, 0.0, None)]
    buffers = [choose_buffer_bytes(config) for config in every]
    assert buffers[0] < buffers[1] == buffers[2]


@pytest.mark.parametrize(
    ("own", "quotas", "expected"),
    [
        ("0::/", {}, sys.maxsize),
        ("0::/a/b", {"a/cpu.max": "350000 100000", "a/b/cpu.max": "max 100000"}, 3),
        ("0::/unseen", {"cpu.max": "50000 100000"}, 1),
        ("4:cpuset:/\n3:cpu,cpuacct:/a\n0::/", {"cpu/a/cpu.cfs_quota_us": "400000"}, 4),
        ("3:cpu:/a", {"cpu/a/cpu.cfs_quota_us": "-1"}, sys.maxsize),
    ],
)
def test_quotas_of_cgroups_limit_the_cores(own, quotas, expected, monkeypatch, tmp_path):
    for name, text in quotas.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).with_name("cpu.cfs_period_us").write_text("100000")
    (tmp_path / "own").write_text(f"{own}\n")
    monkeypatch.setattr(cgroups, "ROOT", tmp_path)
    monkeypatch.setattr(cgroups, "OWN", tmp_path / "own")
    assert cores.quota_cores() == expected


def test_names_and_secrets_differ_from_job_to_job():
    jobs = [Job(2, "shm") for _ in range(50)]
    assert len({job.shm_name for job in jobs}) == len({job.token for job in jobs}) == 50
    assert jobs[0].token not in repr(jobs[0])


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
