"""What holds for ranks of every backend: they meet, one fails, Ctrl-C comes, the launcher dies."""

import re
import signal
import time

import pytest

from tests.grid import slow, some
from tests.launch.command import EXAMPLES, PROGRAMS, SOON_S, Running, cobre, lines_of
from tests.launch.mpi_libraries import needs

HELLO, MEET, WAIT = EXAMPLES / "hello_ranks.py", PROGRAMS / "meet.py", PROGRAMS / "wait.py"


class Backend:
    """A backend, and the MPI library that is meant."""

    def __init__(self, name):
        self.kind, _, library = name.partition("-")
        self.variables = needs(library) if library else {}

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
    """Run a test on these backends, and on the others where there is time."""
    values = [name if name in names else slow(name) for name in BACKENDS]
    return pytest.mark.parametrize("backend", values, indirect=True)


@every_day("shm", "tcp", "mpi-mpich", "mpi-openmpi")
def test_ranks_meet_and_speak_with_their_prefix(backend):
    done = backend.run(3, HELLO)
    assert (done.returncode, done.stderr) == (0, "")
    for rank in range(3):
        hello = f"hello from rank {rank} of 3 on {backend.kind}"
        assert hello in lines_of(done.stdout, rank)
    assert "3 ranks, whose numbers add up to 3" in lines_of(done.stdout, 0)
    assert len(done.stdout.splitlines()) == 4


def test_one_rank_speaks_for_itself():
    for name in ("auto", "tcp"):
        done = cobre("run", "-n", 1, "--backend", name, HELLO)
        kind = "local" if name == "auto" else name
        expected = [f"hello from rank 0 of 1 on {kind}", "1 ranks, whose numbers add up to 0"]
        assert (done.stdout.splitlines(), done.stderr) == (expected, "")


@pytest.mark.parametrize("rank", [0, slow(2)])
@every_day("shm", "mpi-openmpi")
def test_a_killed_rank_is_the_cause_and_the_others_say_so(backend, rank):
    done = backend.run(3, MEET, "kill", rank)
    assert done.returncode == 137
    assert done.stderr.splitlines()[-1].startswith(f"cobre-comm: rank {rank} was ended by signal 9")
    told = re.findall(r"^\[\d\] .*CollectiveFailed: (.*)", done.stderr, flags=re.MULTILINE)
    assert told
    assert all(f"rank {rank} died" in words for words in told)


@pytest.mark.parametrize("rank", [0, slow(2)])
@every_day("tcp", "mpi-mpich")
def test_a_raised_error_is_the_cause_and_not_the_loss_of_its_rank(backend, rank):
    done = backend.run(3, MEET, "raise", rank)
    assert done.returncode == 1
    *_, traceback, last = done.stderr.splitlines()
    assert traceback == "    ValueError: the first cause"
    assert last == f"cobre-comm: rank {rank} exited with code 1"


@every_day("shm", "mpi-openmpi", "mpi-mpich")
def test_an_exit_code_is_that_of_the_rank_which_others_wait_for(backend):
    done = backend.run(3, MEET, "exit", 1)
    assert done.stderr.splitlines()[-1] == "cobre-comm: rank 1 exited with code 3"
    assert done.returncode == 3


@pytest.mark.parametrize("way", ["njit", slow("python")])
@every_day("shm", "mpi-mpich")
def test_ctrl_c_is_keyboard_interrupt_on_every_rank(backend, way):
    with backend.running(3, WAIT, way) as job:
        job.wait_ready(3)
        time.sleep(0.3)  # until they wait
        job.process.send_signal(signal.SIGINT)
        code, output, errors = job.finish(SOON_S)
        assert code == 130
        assert errors.splitlines()[-1] == "cobre-comm: ended by signal 2 (SIGINT)"
        for rank in range(3):
            said = lines_of(output, rank)[1:]
            # A rank may learn of another's end just before its own signal is looked at.
            assert said in ([f"interrupted {rank}", f"finally {rank}"], [f"finally {rank}"])
        assert "interrupted" in output
        assert job.survivors() == []


@every_day("tcp", "mpi-openmpi")
def test_killed_launcher_leaves_nothing_while_ranks_wait_for_each_other(backend):
    with backend.running(2, WAIT, "njit") as job:
        job.wait_ready(2)
        job.process.kill()
        assert job.survivors() == []


@pytest.mark.parametrize(("name", "size"), some([("shm", 3)], [("shm", 2), ("tcp", 2), ("tcp", 3)]))
def test_njit_loop_prints_the_same_digits_for_every_number_of_ranks(name, size):
    words = ["--no-prefix", EXAMPLES / "njit_loop.py"]
    printed = {cobre("run", "-n", 1, *words).stdout}
    printed.add(cobre("run", "-n", size, "--backend", name, *words).stdout)
    assert len(printed) == 1
    assert float(printed.pop()) > 2
