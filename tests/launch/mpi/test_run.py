import re
import sys

import psutil
import pytest

from cobre_comm.processes.job import Job
from cobre_comm.processes.mpi.mpiexec import Mpiexec
from cobre_comm.run.launcher_signals import SignalInbox
from cobre_comm.run.terminal import Options, run_attempt
from cobre_comm.testing import BackendName
from tests.grid import slow
from tests.launch.command import PROGRAMS, Running, cobre, lines_of
from tests.launch.mpi_libraries import LIBRARIES, RUN, needs

ACT, ABORTS, MEET = (PROGRAMS / f"{name}.py" for name in ("act", "mpi_aborts", "meet"))


@pytest.fixture(params=LIBRARIES)
def library(request):
    return needs(request.param)


@pytest.fixture(params=["mpich", slow("openmpi")])
def a_library(request):
    """Return MPICH, or in slow runs also Open MPI, because the two libraries differ little."""
    return needs(request.param)


def test_a_job_whose_ranks_are_on_several_nodes_ends(library):
    """Goodbyes arrive over the network, in the order and at the times that MPI chooses."""
    name = BackendName.parse(f"mpi-{library['MPI4PY_MPIABI']}-net")
    done = cobre(*RUN, 2, MEET, **{**library, **name.environment(2)})
    assert (done.returncode, done.stderr) == (0, "")


def test_input_goes_to_rank_0_and_variables_to_all(a_library):
    outer = {"SLURM_JOB_ID": "17", "SLURM_PROCID": "5", "SLURM_NTASKS": "6", "PMI_RANK": "9"}
    done = cobre(*RUN, 2, "--timeout", 7, ACT, "environment", **a_library, **outer)
    for rank in range(2):
        seen = dict(line.split("=", 1) for line in lines_of(done.stdout, rank) if "=" in line)
        assert seen["COBRE_COMM_BACKEND"] == "mpi"
        assert seen["COBRE_MPI_TIMEOUT_SECS"] == "7"
        assert seen["COBRE_JOB_ID"].startswith("cobre-")
        assert seen["SLURM_JOB_ID"] == "17"
        # mpiexec tells a rank which rank it is; an outer Slurm does not
        assert not {"SLURM_PROCID", "SLURM_NTASKS"} & seen.keys()
        assert str(rank) == seen.get("PMI_RANK", seen.get("PMIX_RANK"))
        assert int(seen["OMP_NUM_THREADS"]) >= 1
    done = cobre(*RUN, 2, ACT, "read", stdin="to rank 0", **a_library)
    assert sorted(done.stdout.splitlines()) == ["[0] read 'to rank 0'", "[1] read ''"]


@pytest.mark.slow
def test_an_environment_of_any_size_reaches_the_ranks(a_library):
    # more than a socket's buffer takes
    large = {f"LARGE_{number}": "x" * 100_000 for number in range(4)}
    done = cobre(*RUN, 2, ACT, "environment", **a_library, **large)
    for rank in range(2):
        seen = dict(line.split("=", 1) for line in lines_of(done.stdout, rank) if "=" in line)
        assert large.items() <= seen.items(), done.stderr


def test_one_rank_goes_through_mpiexec_too(a_library):
    done = cobre(*RUN, 1, ABORTS, 0, **a_library)
    assert done.returncode == 5
    assert done.stderr.splitlines()[-1] == "cobre-comm: rank 0 exited with code 5"


def test_an_abort_ends_the_job_with_its_code(a_library):
    with Running(*RUN, 3, ABORTS, 1, extra=a_library) as job:
        job.wait_ready(3)
        code, _, errors = job.finish()
        assert code == 5
        # MPI ends all ranks with this code, and the launcher may see the end of another rank first.
        assert re.fullmatch(r"cobre-comm: rank \d exited with code 5", errors.splitlines()[-1])
        assert job.survivors() == []


def test_killed_mpiexec_ends_the_job(a_library):
    with Running(*RUN, 2, ACT, "sleep", extra=a_library) as job:
        job.wait_ready(2)
        [mpiexec] = [
            child
            for child in psutil.Process(job.process.pid).children()
            if "shim.py" in " ".join(child.cmdline())
        ]
        mpiexec.kill()
        code, _, errors = job.finish()
        assert code == 137
        assert errors.splitlines()[-1].startswith("cobre-comm: mpiexec was ended by signal 9")
        assert job.survivors() == []


@pytest.mark.skipif(sys.platform != "linux", reason="mpiexec starts ranks on Linux only")
def test_an_mpiexec_that_cannot_be_started_is_an_error_and_leaves_nothing(monkeypatch):
    def cannot(*_, **__):
        raise OSError("no process is left")

    monkeypatch.setattr("cobre_comm.processes.mpi.start.RankProcess", cannot)
    mpiexec = Mpiexec("mpich", ("mpiexec",), {}, "mpich")
    before = set(psutil.Process().children())
    with SignalInbox([]) as inbox, pytest.raises(OSError, match="no process is left"):
        run_attempt(Job(2, "mpi"), ["true"], Options(), inbox, mpiexec)
    assert set(psutil.Process().children()) <= before


def test_calls_of_the_migration_guide_give_what_mpi4py_gives(a_library):
    done = cobre(*RUN, 3, PROGRAMS / "moved.py", **a_library)
    assert done.returncode == 0, done.stderr
    for rank in range(3):
        refused, last = lines_of(done.stdout, rank)
        assert refused.startswith("refused: allreduce failed")
        assert last == "all the same"


def test_a_job_that_loses_a_rank_is_started_again(a_library, tmp_path):
    words = "--max-restarts", 1, PROGRAMS / "restarts.py", tmp_path, "kill", 1, 1
    done = cobre(*RUN, 2, *words, **a_library)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"\[0\] attempt (\d) on (\d)", done.stdout) == [("0", "2"), ("1", "2")]
