"""Jobs on every backend: ranks meet, a rank fails, Ctrl-C arrives, the launcher dies."""

import itertools
import os
import pathlib
import re
import signal
import time

import pytest

from tests.grid import slow, some
from tests.launch.command import EXAMPLES, PROGRAMS, SOON_S, Running, cobre, lines_of
from tests.launch.mpi_libraries import on

HELLO = EXAMPLES / "hello_ranks.py"
ACT, MEET, WAIT = (PROGRAMS / f"{name}.py" for name in ("act", "meet", "wait"))
PROC = pathlib.Path("/proc/self")
STARTERS = {"mpiexec.hydra", "prterun", "mpiexec", "mpirun"}


class Backend:
    """A backend, and the MPI library that it uses."""

    def __init__(self, name):
        (_, self.kind), self.variables = on(name)

    def words(self, ranks, *words):
        return ["run", "-n", ranks, "--backend", self.kind, *words]

    def run(self, ranks, *words):
        return cobre(*self.words(ranks, *words), **self.variables)

    def running(self, ranks, *words):
        return Running(*self.words(ranks, *words), extra=self.variables)


BACKENDS = ["shm", "tcp", "mpi-mpich", "mpi-openmpi"]


@pytest.fixture
def backend(request):
    return Backend(request.param)


def every_day(*names):
    """Run a test on these backends every day, and on all other backends in slow runs."""
    values = [name if name in names else slow(name) for name in BACKENDS]
    return pytest.mark.parametrize("backend", values, indirect=True)


@every_day("shm", "tcp", "mpi-mpich", "mpi-openmpi")
def test_ranks_meet_and_speak_with_their_prefix(backend):
    done = backend.run(2, HELLO)
    assert (done.returncode, done.stderr) == (0, "")
    for rank in range(2):
        hello = f"hello from rank {rank} of 2 on {backend.kind}"
        assert hello in lines_of(done.stdout, rank)
    assert "2 ranks, whose numbers add up to 1" in lines_of(done.stdout, 0)
    assert len(done.stdout.splitlines()) == 3


def test_one_rank_speaks_for_itself():
    for name in ("auto", "tcp"):
        done = cobre("run", "-n", 1, "--backend", name, HELLO)
        kind = "local" if name == "auto" else name
        expected = [f"hello from rank 0 of 1 on {kind}", "1 ranks, whose numbers add up to 0"]
        assert (done.stdout.splitlines(), done.stderr) == (expected, "")


@pytest.mark.parametrize("rank", [0, slow(1)])
@every_day("mpi-openmpi")
def test_a_killed_rank_is_the_cause_and_the_others_say_so(backend, rank):
    done = backend.run(2, MEET, rank)
    assert done.returncode == 137
    assert done.stderr.splitlines()[-1].startswith(f"cobre-comm: rank {rank} was ended by signal 9")
    told = re.findall(r"CollectiveFailed: (.*)", done.stderr)
    assert told
    assert all(f"rank {rank} died" in words for words in told)


@pytest.mark.parametrize("way", ["njit", slow("python")])
@every_day("mpi-mpich")
def test_ctrl_c_is_keyboard_interrupt_on_every_rank(backend, way):
    with backend.running(2, WAIT, way) as job:
        job.wait_ready(2)
        time.sleep(0.3)  # until both ranks wait
        job.process.send_signal(signal.SIGINT)
        code, output, errors = job.finish(SOON_S)
        assert code == 130
        assert errors.splitlines()[-1] == "cobre-comm: ended by signal 2 (SIGINT)"
        for rank in range(2):
            said = lines_of(output, rank)[1:]
            # A rank may learn that another rank has ended just before its own signal arrives. That
            # signal then interrupts only the finally block, even at the first line of the block.
            finally_ = [f"finally {rank}"]
            assert said in ([f"interrupted {rank}", *finally_], finally_, [])
        assert "interrupted" in output
        assert job.survivors() == []


KILLED = [
    ("shm", (ACT, "children")),
    ("mpi-mpich", (ACT, "children")),
]
EVERY_WAY = itertools.product(BACKENDS, [(ACT, "children"), (WAIT, "njit")])


@pytest.mark.parametrize(("backend", "program"), some(KILLED, EVERY_WAY), indirect=["backend"])
def test_killed_launcher_leaves_nothing(backend, program):
    """A killed launcher leaves no waiting rank, no child of a rank, and no mpiexec."""
    with backend.running(3, *program) as job:
        job.wait_ready(3)
        names = {process.name() for process in job.started}
        assert backend.kind != "mpi" or names & STARTERS
        job.process.kill()
        assert job.survivors() == []


@pytest.mark.parametrize(
    ("backend", "to_all"),
    [
        pytest.param("shm", False, marks=pytest.mark.slow),
        pytest.param("shm", True, marks=pytest.mark.skipif(not PROC.is_dir(), reason="no /proc")),
        ("mpi-mpich", False),
        pytest.param("mpi-openmpi", False, marks=pytest.mark.slow),
    ],
    indirect=["backend"],
)
def test_signals_reach_each_rank_once_and_in_order(backend, to_all):
    """The signal is sent to the launcher alone or to all processes, as Slurm does for a step."""
    numbers = [int(n) for n in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGUSR1, signal.SIGTERM)]
    with backend.running(2, ACT, "count") as job:
        job.wait_ready(2)
        for number in numbers:
            for process in {*job.started, job.process} if to_all else [job.process]:
                process.send_signal(number)
            job.wait_for(f"heard {number}", 2)
            time.sleep(0.2)  # time for a second copy of the signal, which must not arrive
        code, output, _ = job.finish()
        for rank in range(2):
            assert lines_of(output, rank)[1:] == [f"heard {number}" for number in numbers]
        assert code == 128 + signal.SIGTERM


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot bind")
@every_day("mpi-mpich")
def test_ranks_have_one_core_each_or_all(backend):
    cores = sorted(os.sched_getaffinity(0))
    for way, bound in (("core", True), ("none", False)):
        done = backend.run(3, "--bind", way, ACT, "affinity")
        for rank in range(3):
            own = [cores[rank % len(cores)]] if bound else cores
            assert lines_of(done.stdout, rank) == [f"cores {own}"]


@pytest.mark.parametrize(
    ("name", "size"), some([], [("shm", 2), ("shm", 3), ("tcp", 2), ("tcp", 3)])
)
def test_njit_loop_prints_the_same_digits_for_every_number_of_ranks(name, size):
    words = ["--no-prefix", EXAMPLES / "njit_loop.py"]
    printed = {cobre("run", "-n", 1, *words).stdout}
    printed.add(cobre("run", "-n", size, "--backend", name, *words).stdout)
    assert len(printed) == 1
    assert float(printed.pop()) > 2
