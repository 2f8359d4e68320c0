"""Processes that a rank starts: none of them takes the seat of the rank, and the job continues."""

import os
import sys

import pytest

from cobre_comm import launch
from cobre_comm.testing import new_job_name
from tests.command import python
from tests.launch.command import PROGRAMS, at_once, cobre, environment, lines_of
from tests.launch.programs.children import starts_children
from tests.launch.run.test_every_backend import Backend

CHILDREN, UNGUARDED = (PROGRAMS / f"{name}.py" for name in ("children", "unguarded"))
ALONE = "local, rank 0 of 1, 1"
LATE_S = {"COBRE_SHM_TIMEOUT_SECS": "60", "COBRE_TCP_TIMEOUT_SECS": "60"}

WAYS = [
    ("shm", "spawn", "after"),
    pytest.param("shm", "spawn", "before", marks=pytest.mark.slow),
    ("shm", "forkserver", "before"),
    ("shm", "program", "before"),
    ("shm", "shell", "after"),
    ("shm", "fork", "after an older"),
    ("tcp", "program", "after an older"),
    ("tcp", "spawn", "before"),
    pytest.param("mpi-mpich", "program", "after an older", marks=pytest.mark.slow),
    ("mpi-mpich", "shell", "after an older"),
    ("mpi-openmpi", "spawn", "after an older"),
    *[
        pytest.param("mpi-openmpi", way, when, marks=pytest.mark.slow)
        for way in ("program", "shell", "forkserver")
        for when in ("before", "after an older")
    ],
    *[
        pytest.param("mpi-mpich", way, "before", marks=pytest.mark.slow)
        for way in ("program", "shell", "spawn")
    ],
]


@pytest.mark.parametrize(("name", "way", "when"), WAYS)
def test_a_child_of_a_rank_works_alone(name, way, when):
    backend = Backend(name)
    words = backend.words(2, CHILDREN, way, when)
    done = cobre(*words, **{**backend.variables, **LATE_S})
    assert done.returncode == 0, done.stderr
    kind = backend.kind
    other, said = (
        dict(line.split(": ", 1) for line in lines_of(done.stdout, rank) if ": " in line)
        for rank in range(2)
    )
    assert other == {"again": f"{kind}, rank 0 of 2, 2"}
    assert said.pop("again") == f"{kind}, rank 1 of 2, 2"
    assert said.pop("child") == said.pop("local") == ALONE
    if "older" in when:
        assert said.pop("older") == ALONE
    refused = [said.pop("named"), *([said.pop("configured")] if kind == "shm" else [])]
    for each in refused:
        assert each.startswith(f"InitializationFailed: backend '{kind}' could not start: ")
        assert "is rank 1 of the job; set COBRE_COMM_BACKEND=local" in each
    if kind == "shm":
        assert said.pop("own") == "shm, rank 0 of 1, 1"
    assert said == {}
    told = [line for line in lines_of(done.stderr, 1) if "works alone, on" in line]
    assert len(told) == (2 if "older" in when else 1)
    assert "which has started this one, is rank 1 of the job" in told[0]


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_a_script_without_guard_in_a_pool_of_a_rank_is_told_so(backend):
    done = cobre("run", "-n", 2, "--backend", backend, UNGUARDED, **LATE_S)
    assert done.returncode == 0, done.stderr
    assert lines_of(done.stdout, 0) == ["met"]
    assert lines_of(done.stdout, 1) == ["broken", "met"]
    assert 'put what the script does under if __name__ == "__main__":' in done.stderr


def test_a_child_of_a_worker_works_alone(capfd, monkeypatch):
    monkeypatch.setenv("COBRE_COMM_BACKEND", "shm")
    assert launch(starts_children, 2, timeout=20).values == [2, 2]
    lines = capfd.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("child:")] == [f"child: {ALONE}"] * 2


WRAPPED = "from tests.launch.programs.children import got; print(got())"


def by_hand(*command):
    """Run a command as two ranks without any launcher; return their outputs."""
    job = {"COBRE_SHM_NAME": new_job_name(), "COBRE_SHM_SIZE": "2"}
    ranks = [{**job, "COBRE_SHM_RANK": str(rank)} for rank in range(2)]
    return [done.stdout.splitlines() for done in at_once(command, ranks)]


def test_a_program_between_launcher_and_rank_takes_no_seat():
    one = f'{sys.executable} -c "{WRAPPED}"'
    again = (
        f"import subprocess; subprocess.run([{sys.executable!r}, '-c', {WRAPPED!r}], check=True)"
    )
    expected = [[f"shm, rank {rank} of 2, 2"] * 3 for rank in range(2)]
    assert by_hand("sh", "-c", f"{one}; {one}; exec {one}") == expected
    assert by_hand(sys.executable, "-c", again) == [[f"shm, rank {r} of 2, 2"] for r in range(2)]


NESTED = """
import subprocess, sys
from cobre_comm import create_communicator
command = [sys.executable, "-m", "cobre_comm", "run", "-n", "2", "--backend", *sys.argv[1:]]
with create_communicator() as comm:
    if comm.rank == 0:
        subprocess.run(command, check=True)
    comm.barrier()
"""


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        ("shm", "shm"),
        ("mpi-mpich", "mpi-mpich"),
        pytest.param("shm", "tcp", marks=pytest.mark.slow),
        pytest.param("mpi-openmpi", "mpi-openmpi", marks=pytest.mark.slow),
    ],
)
def test_a_rank_may_start_a_job(outer, inner, tmp_path):
    (tmp_path / "nested.py").write_text(NESTED)
    (tmp_path / "got.py").write_text(f"import sys; sys.path[:0] = [{os.getcwd()!r}]; {WRAPPED}")  # noqa: PTH109
    backend, kind = Backend(outer), Backend(inner).kind
    done = backend.run(2, tmp_path / "nested.py", kind, tmp_path / "got.py")
    assert done.returncode == 0, done.stderr
    told = sorted(line[len("[0] ") :] for line in done.stdout.splitlines())
    assert told == [f"[{rank}] {kind}, rank {rank} of 2, 2" for rank in range(2)]


def test_a_rank_of_one_becomes_another_program():
    program = (
        "import os, sys\nfrom tests.launch.programs.children import got\nprint(got(), flush=True)\n"
        f"os.execv(sys.executable, [sys.executable, '-c', {WRAPPED!r}])"
    )
    told = environment(COBRE_SHM_NAME=new_job_name(), COBRE_SHM_RANK="0", COBRE_SHM_SIZE="1")
    assert python("-c", program, env=told).stdout.splitlines() == ["shm, rank 0 of 1, 1"] * 2
