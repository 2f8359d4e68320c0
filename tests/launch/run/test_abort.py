"""``abort`` ends all ranks, and the job has its code, with each launcher and without a launcher."""

import itertools
import os
import sys

import pytest

from cobre_comm import LocalBackend, WorkerError, launch
from cobre_comm.config import LATE_VARIABLE
from tests.forked import ranks
from tests.grid import some
from tests.launch.command import DEADLINE_S, PROGRAMS, Running, at_once
from tests.launch.mpi_libraries import on
from tests.launch.programs.aborts import CODE, act
from tests.launch.run.test_raised import PLACES

ABORTS = PROGRAMS / "aborts.py"
DAILY = [
    ("wait", "tcp:0,0,1,1", "njit"), ("compute", "tcp-flat", "python"), ("part", "shm", "python"),
    ("compute", "mpi-openmpi", "python"),
]  # fmt: skip
EVERYWHERE = itertools.product(["wait"], PLACES, ["python", "njit"])
EACH_WAY = itertools.product(["part", "compute"], ["shm", "tcp:0,1,1,0"], ["python"])
ALL = dict.fromkeys([*EVERYWHERE, *EACH_WAY, *DAILY])


@pytest.mark.parametrize(("way", "place", "caller"), some(DAILY, ALL))
def test_a_launched_job_ends_with_the_code(way, place, caller):
    option, variables = on(place)
    size = 4 if ":" in place else 2
    with Running("run", "-n", size, *option, ABORTS, way, caller, extra=variables) as job:
        job.wait_ready(size)
        code, output, errors = job.finish()
        assert code == CODE, errors
        assert "caught" not in output
        assert "abort has returned" not in output
        assert f"rank 1 called abort({CODE})" in errors
        assert errors.splitlines()[-1] == f"cobre-comm: rank 1 exited with code {CODE}"
        assert job.survivors() == []


def by_hand(rank, size):
    name = f"/cobre-test-abort-{os.getpid()}"
    return {"COBRE_SHM_NAME": name, "COBRE_SHM_RANK": str(rank), "COBRE_SHM_SIZE": str(size)}


def as_torchrun(rank, size):
    return {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(os.getpid()), "TORCHELASTIC_RUN_ID": "abort"}  # fmt: skip


def as_srun(rank, size):
    return {"SLURM_JOB_ID": str(os.getpid()), "SLURM_STEP_ID": "0", "SLURM_PROCID": str(rank),
            "SLURM_STEP_NUM_TASKS": str(size), "SLURM_STEP_NODELIST": "127.0.0.1"}  # fmt: skip


BY_HAND = [(by_hand, "njit"), (as_torchrun, "python"), (as_srun, "python")]
ALL_BY_HAND = itertools.product([by_hand, as_torchrun, as_srun], ["python", "njit"])


@pytest.mark.parametrize(("placed", "caller"), some(BY_HAND, ALL_BY_HAND))
def test_ranks_without_a_launcher_of_ours_end_each_other(placed, caller):
    """Ranks that wait end immediately, with the code of the abort, before they handle any error."""
    # Lines on late ranks are turned off: on a busy machine other ranks would write such lines.
    every = {"COBRE_TCP_TOKEN": "of this test", LATE_VARIABLE: "0"}
    ranks = [{**every, **placed(rank, 3)} for rank in range(3)]
    done = at_once([sys.executable, ABORTS, "wait", caller], ranks)
    assert [rank.returncode for rank in done] == [CODE] * 3, done
    assert not any("caught" in rank.stdout or "returned" in rank.stdout for rank in done)
    assert done[1].stderr == f"cobre-comm: rank 1 called abort({CODE})\n"
    for rank in (0, 2):
        assert done[rank].stderr == f"cobre-comm: rank 1 has aborted the job with code {CODE}\n"


def test_launch_raises_an_error_with_the_code():
    with pytest.raises(WorkerError) as caught:
        launch(act, 2, args=("compute", "python"), timeout=DEADLINE_S)
    assert (caught.value.rank, caught.value.exit_code, caught.value.inner) == (1, CODE, None)


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_whoever_aborts_by_a_part_is_named_by_its_rank_in_the_job(backend, capfd):
    def act(comm, way):
        part = LocalBackend() if way == "alone" else comm.split(int(comm.rank < 2))
        if comm.rank == 3:
            part.abort(CODE)
        part.barrier()
        comm.barrier()

    for way in ("part", "alone"):
        ended = ranks(backend, 4, act, way)
        said = capfd.readouterr().err
        assert [rank.exit_code for rank in ended] == [CODE] * 4, said
        assert said.count(f"cobre-comm: rank 3 called abort({CODE})\n") == 1, said
        assert said.count(f"cobre-comm: rank 3 has aborted the job with code {CODE}\n") == 3, said
