"""Ranks that Slurm or torchrun has started: their configuration, and how they meet."""

import os
import sys

import pytest

from cobre_comm import InitializationFailed, factory
from cobre_comm.backends.mpi import library
from cobre_comm.backends.tcp.foreign import configured, first_host, foreign_job
from tests.launch.command import EXAMPLES, at_once

STEP = {
    "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "3",
    "SLURM_NTASKS": "3", "SLURM_STEP_NODELIST": "127.0.0.1,second",
}  # fmt: skip
TORCH = {"RANK": "0", "WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
SECRET = {"COBRE_TCP_TOKEN": "0123456789abcdef"}


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
        (STEP, True, "tcp"),  # srun has set no variable by which MPI finds its ranks
        (STEP | {"SLURM_MPI_TYPE": "pmi2"}, True, "mpi"),
        (STEP | {"SLURM_MPI_TYPE": "pmi2"}, False, "tcp"),
        (STEP | {"PMIX_RANK": "0"}, True, "mpi"),
        (STEP | {"COBRE_SHM_NAME": "/x"}, True, "shm"),  # our launcher, inside a task of srun
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
    config = configured(STEP | mine)
    assert (config.port, config.coordinator) == (4000, "ib0")
    assert (config.rank, config.size, config.connect_timeout_ms) == (0, 3, 300000)


@pytest.mark.parametrize("change", [{"SLURM_STEP_ID": "1"}, {"SLURM_RESTART_COUNT": "1"}])
def test_one_secret_for_several_steps_lets_none_meet_another(change):
    one, peer, other = (
        configured(STEP | SECRET | more).token for more in ({}, {"SLURM_PROCID": "2"}, change)
    )
    assert one == peer != other
    assert SECRET["COBRE_TCP_TOKEN"] not in (one, other)


@pytest.mark.parametrize("announced", [STEP, TORCH], ids=["slurm", "torchrun"])
def test_ranks_meet(tmp_path, announced):
    unique = {"SLURM_JOB_ID": str(os.getpid()), "MASTER_PORT": str(os.getpid())}
    job = announced | {name: unique[name] for name in unique if name in announced} | SECRET
    ranks = [job | {"SLURM_PROCID": rank, "RANK": rank} for rank in "120"]
    done = at_once([sys.executable, EXAMPLES / "hello_ranks.py"], ranks, cwd=tmp_path)
    assert sorted("".join(rank.stdout + rank.stderr for rank in done).splitlines()) == [
        "3 ranks, whose numbers add up to 3",
        *(f"hello from rank {rank} of 3 on tcp" for rank in range(3)),
    ]


@pytest.mark.parametrize(
    ("announced", "launcher"),
    [
        (STEP, "srun"),
        (TORCH | {"TORCHELASTIC_RUN_ID": "none"}, "torchrun"),
        (TORCH, "another launcher"),
    ],
)
def test_no_secret_says_what_to_do(announced, launcher):
    with pytest.raises(InitializationFailed) as caught:
        configured(announced)
    assert f"{launcher} has started 3 ranks" in str(caught.value)
    assert str(caught.value).endswith(": export COBRE_TCP_TOKEN=$(openssl rand -hex 32)")
