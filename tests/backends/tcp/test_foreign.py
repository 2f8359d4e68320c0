"""Ranks that Slurm or torchrun has started: their configuration, and how they meet."""

import os
import secrets
import sys

import pytest

from cobre_comm import InitializationFailed, factory
from cobre_comm.backends.mpi import library
from cobre_comm.backends.tcp.foreign import configured, first_host, foreign_job
from cobre_comm.backends.tcp.process import this_machine
from tests.launch.command import EXAMPLES, at_once

STEP = {
    "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "3",
    "SLURM_NTASKS": "3", "SLURM_STEP_NODELIST": "127.0.0.1,second",
}  # fmt: skip
TORCH = {"RANK": "0", "WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


@pytest.mark.parametrize(
    ("nodelist", "first"),
    [
        ("n1", "n1"),
        ("n[01-04,7],gpu1", "n01"),
        ("gpu1,n[1-2]", "gpu1"),
        ("tux[3,5]", "tux3"),
        ("r[2-3]c[01-12]", "r2c01"),
    ],
)
def test_first_host(nodelist, first):
    assert first_host(nodelist) == first


@pytest.mark.parametrize("change", [{"SLURM_STEP_ID": "1"}, {"SLURM_JOB_ID": "8"}])
def test_steps_and_jobs_of_one_node_meet_apart(change):
    one, other = foreign_job(STEP), foreign_job(STEP | change)
    assert one.port != other.port
    assert one.name != other.name


def test_a_requeued_job_does_not_read_what_the_first_run_left():
    assert foreign_job(STEP).name != foreign_job(STEP | {"SLURM_RESTART_COUNT": "1"}).name


@pytest.mark.parametrize(
    ("environ", "has_mpi", "backend"),
    [
        (STEP, True, "tcp"),  # srun has given MPI nothing to find its ranks by
        (STEP | {"SLURM_MPI_TYPE": "pmi2"}, True, "mpi"),
        (STEP | {"SLURM_MPI_TYPE": "pmi2"}, False, "tcp"),
        (STEP | {"PMIX_RANK": "0"}, True, "mpi"),
        (STEP | {"COBRE_SHM_NAME": "/x"}, True, "shm"),  # our launcher, inside a task
        (STEP | {"SLURM_STEP_NUM_TASKS": "1", "SLURM_NTASKS": "1"}, False, "local"),
        (TORCH, True, "tcp"),
        (TORCH | {"WORLD_SIZE": "1"}, True, "local"),
    ],
)
def test_auto(monkeypatch, environ, has_mpi, backend):
    monkeypatch.setattr(library, "why_not", lambda: "" if has_mpi else "no MPI")
    assert factory._detect(environ)[0] == backend


def test_what_the_user_has_set_holds():
    mine = {"COBRE_TCP_PORT": "4000", "COBRE_TCP_TOKEN": "mine", "COBRE_TCP_COORDINATOR": "ib0"}
    with configured(STEP | mine) as config:
        assert (config.port, config.token, config.coordinator) == (4000, "mine", "ib0")
        assert (config.rank, config.size, config.connect_timeout_ms) == (0, 3, 300000)


@pytest.mark.parametrize("announced", [STEP, TORCH], ids=["slurm", "torchrun"])
def test_ranks_meet_and_leave_nothing(tmp_path, announced):
    unique = {"SLURM_JOB_ID": str(os.getpid()), "MASTER_PORT": str(os.getpid())}
    job = announced | {name: unique[name] for name in unique if name in announced}
    ranks = [job | {"SLURM_PROCID": rank, "RANK": rank} for rank in "120"]
    done = at_once([sys.executable, EXAMPLES / "hello_ranks.py"], ranks, cwd=tmp_path)
    assert sorted("".join(rank.stdout + rank.stderr for rank in done).splitlines()) == [
        "3 ranks, whose numbers add up to 3",
        *(f"hello from rank {rank} of 3 on tcp" for rank in range(3)),
    ]
    assert list(tmp_path.iterdir()) == []


def refusal(folder, rank, **more):
    environ = STEP | {"SLURM_PROCID": rank, "COBRE_TCP_TOKEN_DIR": str(folder)} | more
    says = pytest.raises(InitializationFailed, match="export COBRE_TCP_TOKEN=")
    with says as caught, configured(environ):
        pytest.fail("there is no secret")
    return str(caught.value)


def test_no_secret_says_what_to_do(tmp_path):
    assert "No such file" in refusal(tmp_path / "missing", "0")
    late = refusal(tmp_path, "1", COBRE_TCP_CONNECT_TIMEOUT_MS="1")
    assert "rank 0 has not written" in late
    assert str(tmp_path) in late


def test_what_a_killed_rank_0_has_left_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("cobre_comm.backends.tcp.foreign._made", iter([0]))
    left = tmp_path / f".cobre.{foreign_job(STEP).name}.0.token"
    left.touch(mode=0o600)
    left.write_text(f"{this_machine().hex()} 127.0.0.1 of-another-job")
    assert "rank 0 has not written" in refusal(tmp_path, "1", COBRE_TCP_CONNECT_TIMEOUT_MS="1")


def test_the_next_rank_0_removes_what_killed_ones_have_left(tmp_path):
    here = {"COBRE_TCP_TOKEN_DIR": str(tmp_path)}
    with configured(STEP | here):
        [held] = tmp_path.iterdir()
        left, elsewhere = tmp_path / ".cobre.of-a-killed-job.token", tmp_path / ".cobre.far.token"
        for file, machine in ((left, this_machine().hex()), (elsewhere, "another")):
            file.touch(mode=0o600)
            file.write_text(f"{machine} 127.0.0.1 secret")
        with configured(STEP | here | {"SLURM_JOB_ID": "8"}):
            assert not left.exists()
            assert held.exists()
        assert set(tmp_path.iterdir()) == {held, elsewhere}


def test_a_secret_that_others_can_read_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("cobre_comm.backends.tcp.foreign._made", iter([0, 0, 0]))
    here = {"COBRE_TCP_TOKEN_DIR": str(tmp_path), "SLURMD_NODENAME": "second"}
    with configured(STEP | here) as config:
        [file] = tmp_path.iterdir()
        assert file.stat().st_mode & 0o777 == 0o600
        with configured(STEP | here | {"SLURM_PROCID": "2", "SLURMD_NODENAME": "third"}) as peer:
            assert peer.token == config.token
            assert peer.coordinator == "second"  # where rank 0 is, which the list does not tell
        assert config.token not in repr(config)
    file.write_text(secrets.token_hex(8))
    file.chmod(0o640)
    assert "others can read it" in refusal(tmp_path, "1")


def plant_fifo(path):
    os.mkfifo(path, 0o600)


def plant_folder(path):
    path.mkdir(mode=0o700)


def plant_link(path):
    target = path.with_name("target")
    target.touch(mode=0o600)
    target.write_text(f"{secrets.token_hex(8)} 127.0.0.1 secret")
    path.symlink_to(target)


def plant_huge(path):
    path.touch(mode=0o600)
    os.truncate(path, 2**40)


def plant_file_of_another(path):
    if os.getuid() != 0:
        pytest.skip("root alone can give files away")
    path.touch(mode=0o600)
    os.chown(path, 65534, 65534)


PLANTED = [
    (plant_fifo, "is not the file of rank 0 (there is a FIFO of user"),
    (plant_folder, "is not the file of rank 0 (there is a folder of user"),
    (plant_link, "(there is a link of user"),
    (plant_huge, "has 1099511627776 bytes"),
    (plant_file_of_another, "belongs to another user"),
]


@pytest.mark.parametrize(("plant", "says"), PLANTED)
def test_what_stands_in_the_place_of_the_secret_is_named_and_not_read(
    plant, says, tmp_path, monkeypatch
):
    monkeypatch.setattr("cobre_comm.backends.tcp.foreign._made", iter([0, 0]))
    file = tmp_path / f".cobre.{foreign_job(STEP).name}.0.token"
    plant(file)
    said = refusal(tmp_path, "1")
    assert says in said
    assert str(file) in said


@pytest.mark.parametrize(("plant", "says"), PLANTED)
def test_rank_0_waits_for_nothing_that_others_have_left(plant, says, tmp_path):
    left = tmp_path / ".cobre.of-another-job.token"
    plant(left)
    with configured(STEP | {"COBRE_TCP_TOKEN_DIR": str(tmp_path)}) as config:
        assert config.token
    assert os.path.lexists(left)


def test_rank_0_names_the_folder_in_the_place_of_its_file(tmp_path, monkeypatch):
    monkeypatch.setattr("cobre_comm.backends.tcp.foreign._made", iter([0]))
    (tmp_path / f".cobre.{foreign_job(STEP).name}.0.token").mkdir()
    assert "(there is a folder of user" in refusal(tmp_path, "0")
