"""How users run ranks in tests: ranks have limits, may be killed, and report their outcomes."""

import os
import pathlib
import shlex
import signal
import sys
import time

import numpy as np
import psutil
import pytest

from cobre_comm.processes.mpi.mpiexec import find_mpiexec
from cobre_comm.testing import (
    BackendName,
    RankPool,
    RanksFailed,
    leaders,
    leftovers,
    node_of_ranks,
    plugin,
    run_ranks,
    run_ranks_outcomes,
)
from cobre_comm.testing.ranks import members
from cobre_comm.testing.ranks.pool import NOT_STARTED
from tests.command import python, run
from tests.grid import skip_unless_here, slow, values

MPI = ["mpi-openmpi", "mpi-mpich", slow("mpi")]
STARTS = ["shm", *(slow(library) for library in ("mpi-openmpi", "mpi-mpich", "mpi"))]


# Bodies that end in every way in which a body can end. The code that runs bodies is under test, so
# these bodies are run by calls, not by the mark.


def identity(comm, *args):
    return (comm.rank, comm.size, *args)


def fails_on(comm, rank):
    if comm.rank == rank:
        raise ZeroDivisionError(f"on rank {rank}")
    return "fine"


def raises_what_cannot_be_pickled(comm):
    class Local(Exception):
        pass

    raise Local("a class of this call")


def sleeps_on(comm, rank):
    if comm.rank == rank:
        time.sleep(60)
    return os.getpid()


def sleeps(comm):
    time.sleep(float(os.environ.get("PAUSE_S", "0")))
    return os.getpid()


def exits_with(comm, code):
    print("said before the end", flush=True)
    sys.exit(code)


def environment(comm, *names):
    return [os.environ.get(name) for name in names], comm is None


def pid(comm):
    return os.getpid()


def world(comm):
    from mpi4py import MPI

    library = MPI.Get_library_version()
    return MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size, library, os.environ.get("MINE")


def ends_and_others_wait(comm, pause_s):
    """Rank 1 exits and rank 2 is killed, while rank 0 computes."""
    if comm.rank == 1:
        exits_with(comm, 7)
    if comm.rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(pause_s)


def is_running(pid):
    """Whether a process lives; an orphan of mpiexec is a zombie until process 1 reaps it."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(params=MPI)
def mpi(request):
    skip_unless_here(request.param)
    return request.param


@pytest.fixture(params=STARTS)
def started(request):
    """A backend whose ranks are children of this process, and one whose ranks mpiexec starts."""
    return skip_unless_here(request.param)


def test_values_in_rank_order():
    assert run_ranks("shm", 3, identity, "x") == [(r, 3, "x") for r in range(3)]
    assert run_ranks("local", 1, identity) == [(0, 1)]


def test_local_has_one_rank():
    with pytest.raises(ValueError, match="one rank"):
        run_ranks("local", 2, identity)


def test_a_function_of_the_program_that_was_started_is_refused():
    def body(comm):
        return comm.rank

    body.__module__ = "__main__"
    with pytest.raises(ValueError, match=r"cannot import .*body from the program .* in a module"):
        run_ranks("local", 1, body)


def test_failure_has_the_traceback_of_the_rank():
    with pytest.raises(RanksFailed, match="fails_on") as caught:
        run_ranks("shm", 2, fails_on, 1)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert "rank 1" in str(caught.value)
    assert caught.value.outcomes[0].value == "fine"


def test_expected_exceptions():
    raised = run_ranks("local", 1, fails_on, 0, expect=ZeroDivisionError)
    assert [str(error) for error in raised] == ["on rank 0"]
    with pytest.raises(RanksFailed, match="every rank should raise"):
        run_ranks("shm", 2, fails_on, 0, expect=ZeroDivisionError)


def test_exception_that_cannot_be_pickled():
    [outcome] = run_ranks_outcomes("local", 1, raises_what_cannot_be_pickled)
    assert "Local: a class of this call" in str(outcome.exception)


def test_ends_of_ranks(started):
    pause_s = 0.1 if started == "shm" else 2.0
    outcomes = run_ranks_outcomes(started, 3, ends_and_others_wait, pause_s)
    assert [outcome.ok for outcome in outcomes] == [True, False, False]
    assert [outcome.exit_code for outcome in outcomes] == [None, 7, -9]
    assert "said before the end" in outcomes[1].output


@pytest.mark.slow
def test_deadline(started):
    outcomes = run_ranks_outcomes(
        started, 2, sleeps, connect=False, env=[{"PAUSE_S": "60"}, {}], timeout_s=6
    )
    assert outcomes[0].timed_out
    assert "sleeps" in outcomes[0].output, "the stack at the deadline"
    assert not is_running(outcomes[1].value)


def test_pool_keeps_its_processes_until_a_body_fails(started):
    with RankPool(started, 2) as pool:
        first = pool.run(pid)
        assert pool.run(pid) == first == pool.pids
        assert pool.run(pid, fresh=True) == first
        with pytest.raises(RanksFailed):
            pool.run(fails_on, 0, fresh=True)
        assert pool.run(pid) == first
        with pytest.raises(RanksFailed):
            pool.run(fails_on, 0)
        second = pool.run(pid)
        pool.run_outcomes(exits_with, 3)
        last = pool.run(pid)
        assert len({*first, *second, *last}) == 6
    assert not any(is_running(pid) for pid in (*first, *second, *last))
    assert leftovers() == []


FAILS_ONCE = """#!/bin/sh
if [ "$1" != --version ] && mkdir {folder}/started 2>/dev/null; then
  echo "{words}. We cannot" >&2
  exit 213
fi
exec {command} "$@"
"""


def test_an_mpiexec_that_fails_by_itself_is_started_once_more(tmp_path):
    skip_unless_here("mpi-openmpi")
    environment = BackendName.parse("mpi-openmpi").environment()
    real = find_mpiexec({**os.environ, **environment})
    starter = tmp_path / "starter"
    starter.write_text(
        FAILS_ONCE.format(folder=tmp_path, words=NOT_STARTED, command=shlex.join(real.command))
    )
    starter.chmod(0o700)
    with RankPool("mpi-openmpi", 2, env={"COBRE_MPI_MPIEXEC": str(starter)}) as pool:
        assert pool.run(identity) == [(0, 2), (1, 2)]
        assert (tmp_path / "started").exists()
        pool.close()
        starter.write_text(f'#!/bin/sh\necho "{NOT_STARTED}"\nexit 213\n')
        with pytest.raises(RanksFailed, match=NOT_STARTED):
            pool.run(identity)


def test_environment_is_of_this_job_alone(monkeypatch):
    monkeypatch.setenv("COBRE_SHM_TIMEOUT_SECS", "1")
    monkeypatch.setenv("SLURM_PROCID", "3")
    names = ("COBRE_SHM_TIMEOUT_SECS", "SLURM_PROCID", "COBRE_SHM_RANK", "MINE")
    found = values("shm", 2, environment, *names, env={"MINE": "yes"})
    assert found[1] == ([None, None, "1", "yes"], True)


class ExitsWhenLoaded:
    """A value that ends the process with exit code 0 when it is unpickled."""

    def __reduce__(self):
        return sys.exit, (0,)


def test_ranks_import_what_this_process_does(tmp_path, monkeypatch):
    """The current folder has another copy of a package, and files that are named like modules."""
    for name in ("cobre_comm", "pickle", "ctypes"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('of the current folder')")
    monkeypatch.setattr(sys, "path", [*sys.path, pathlib.Path("no text"), np.str_("numpy's")])
    done = run(*members.command(), cwd=tmp_path, input="")
    assert done.stderr == ""


def test_an_exit_with_0_is_no_value():
    (ended,) = run_ranks_outcomes("local", 1, exits_with, 0)
    assert (ended.ok, ended.exit_code) == (False, 0)
    (loads,) = run_ranks_outcomes("local", 1, identity, ExitsWhenLoaded())
    assert (loads.ok, loads.exit_code) == (False, 0)
    (returns,) = run_ranks_outcomes("local", 1, returns_what_exits)
    assert isinstance(returns.exception, SystemExit)


def returns_what_exits(comm):
    return ExitsWhenLoaded()


def test_pool_survives_the_end_of_a_rank(monkeypatch):
    with RankPool("local", 1) as pool:
        assert pool.run_outcomes(exits_with, 3)[0].exit_code == 3
        assert pool.run(identity) == [(0, 1)]
        with monkeypatch.context() as emulated:
            # the factor of all limits; under emulation it is larger than 1
            emulated.setenv("COBRE_TEST_LIMITS", "0.005")
            assert pool.run_outcomes(sleeps_on, 0, timeout_s=600)[0].timed_out
        assert pool.run(identity) == [(0, 1)]


def test_only_the_pools_that_were_used_last_stay(monkeypatch):
    monkeypatch.setattr(plugin, "MOST_POOLS", 2)
    pools = plugin.Pools()
    first = pools.get("local", 1)
    assert first.run(identity) == [(0, 1)]
    assert pools.get("shm", 2) is not first
    assert pools.get("local", 1) is first
    pools.get("tcp", 2)
    pools.get("shm", 3)
    assert first.pids == []
    assert pools.get("local", 1) is not first
    pools.close()


def test_names_of_backends():
    assert BackendName.parse("shm") == BackendName("shm")
    assert BackendName.parse("of-others") == BackendName("of-others")
    assert BackendName.parse("mpi") == BackendName("mpi")
    assert BackendName.parse("mpi-mpich:0,1,1") == BackendName("mpi", "mpich", (0, 1, 1))
    assert BackendName.parse("mpi-openmpi-net:0,1") == BackendName("mpi", "openmpi", (0, 1), True)
    assert BackendName.parse("mpi:0") == BackendName("mpi", None, (0,))
    for wrong in ("mpi-lam", "mpi-", "mpi:", "mpi:a", "mpi-net", "mpi-mpich-net:0,0,1"):
        with pytest.raises(ValueError, match=r"mpi|int"):
            BackendName.parse(wrong)


def test_who_shares_memory_with_whom():
    assert node_of_ranks("shm", 3) == node_of_ranks("mpi-mpich", 3) == [0, 0, 0]
    assert node_of_ranks("tcp", 3) == [0, 0, 0]
    assert node_of_ranks("tcp-flat", 3) == node_of_ranks("mpi-mpich-net", 3) == [0, 1, 2]
    assert node_of_ranks("mpi:0,1", 5) == [0, 1, 0, 1, 0]
    assert leaders("mpi-openmpi:0,0,1", 5) == [True, False, True, False, False]
    assert leaders("tcp-flat", 2) == [True, True]


def test_mpiexec_starts_the_ranks(mpi):
    seen = values(mpi, 3, world, env=[{}, {"MINE": "yes"}, {}])
    ranks, sizes, libraries, own = zip(*seen, strict=True)
    assert (ranks, set(sizes), own) == ((0, 1, 2), {3}, (None, "yes", None))
    assert len(set(libraries)) == 1
    assert {"mpi-openmpi": "Open MPI", "mpi-mpich": "MPICH"}.get(mpi, "MPI") in libraries[0]


RESERVES = """
import warnings
from cobre_comm.testing import rank_environment
for size in (1, 2, 3):
    rank_environment("tcp", size)
warnings.simplefilter("error", ResourceWarning)
"""


def test_a_process_that_has_made_jobs_over_sockets_ends_in_silence():
    done = python("-c", RESERVES)
    assert (done.stdout, done.stderr) == ("", "")
