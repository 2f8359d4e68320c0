"""A program may replace ``sys.stdin``, ``sys.stdout`` and ``sys.stderr`` by anything or nothing."""

import pytest

from tests.command import python
from tests.launch.command import COMMAND, cobre, environment

PROGRAM = """
import io, os, sys
from cobre_comm import create_communicator

class Bare:
    def write(self, text):
        pass

class Raises:
    def __getattr__(self, name):
        raise RuntimeError(name)

def closed():
    stream = io.StringIO()
    stream.close()
    return stream

def main(how, end):
    makers = {"none": lambda: None, "closed": closed, "bare": Bare, "raises": Raises}
    sys.stdin, sys.stdout, sys.stderr = [makers[how]() for _ in range(3)]
    with create_communicator() as comm:
        total = comm.sum(comm.rank + 1)
        os.write(1, f"sum {total}\\n".encode())
        if end == "abort":
            comm.abort(7)
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # Python flushes them at its end

if __name__ == "__main__":
    main(*sys.argv[1:])
"""
STATS = {"COBRE_COMM_STATS": "1"}


@pytest.fixture
def program(written):
    return written(PROGRAM)


@pytest.mark.parametrize("how", ["none", "closed", "bare", "raises"])
def test_a_program_without_streams_has_a_communicator(how, program):
    done = python(str(program), how, "return", env=environment(**STATS))
    assert (done.stdout, done.stderr) == ("sum 1\n", "")


@pytest.mark.parametrize(
    ("how", "backend", "end"),
    [("none", "shm", "return"), ("closed", "tcp", "return"), ("raises", "shm", "abort")],
)
def test_ranks_without_streams_meet(how, backend, end, program):
    words = "run", "-n", 2, "--backend", backend, "--no-prefix", program, how, end
    done = cobre(*words, **STATS)
    assert done.returncode == (7 if end == "abort" else 0), done.stderr
    assert "sum 3\n" in done.stdout
    assert "Error" not in done.stderr


@pytest.mark.parametrize("closed", ["0", "1", "2", "0 1 2"])
@pytest.mark.parametrize("how", ["run", "plain"])
def test_closed_descriptors(how, closed, program):
    """The shell closes descriptors, so Python's streams on these descriptors are None."""
    command = COMMAND if how == "run" else []
    words = ["run", "-n", "2"] if how == "run" else [COMMAND[0]]
    told = [*command, *words, str(program), "none", "return"]
    closing = " ".join(f"{number}>&-" for number in closed.split())
    done = cobre("-c", f'"$@" {closing}', "sh", *told, before=["sh"])
    assert done.returncode == 0 or "1" in closed, done.stderr  # the program writes to descriptor 1
    assert "isatty" not in done.stderr
    assert ("sum" in done.stdout) == ("1" not in closed)
