"""On a busy machine, launchers name the rank that failed first, and not one that has lost it."""

import contextlib
import os
import subprocess
import sys

import pytest

from cobre_comm import WorkerError, launch
from tests.launch import bodies
from tests.launch.command import PROGRAMS, cobre
from tests.launch.mpi_libraries import needs

RUNS = int(os.environ.get("COBRE_TEST_RUNS", "10"))  # of each; 200 in all
BUSY = 4  # processes beside the ranks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module", autouse=True)
def busy():
    with contextlib.ExitStack() as stack:
        for _ in range(BUSY):
            command = [sys.executable, "-c", "while True: pass"]
            process = stack.enter_context(subprocess.Popen(command))
            stack.callback(process.kill)
        yield


@pytest.mark.parametrize(("way", "code"), [("exit", 3), ("raise", 1)])
@pytest.mark.parametrize("when", [(), ("at once",)], ids=["after a barrier", "at once"])
@pytest.mark.parametrize("name", ["shm", "tcp", "mpi-mpich", "mpi-openmpi"])
def test_run(name, way, code, when):
    kind, _, library = name.partition("-")
    variables = needs(library) if library else {}
    misses = []
    for _ in range(RUNS):
        words = ["run", "-n", 3, "--backend", kind, PROGRAMS / "meet.py", way, 1, *when]
        done = cobre(*words, **variables)
        *_, before, last = ["", *done.stderr.splitlines()]
        right = last == f"cobre-comm: rank 1 exited with code {code}" and done.returncode == code
        if not right or (way == "raise" and before != "    ValueError: the first cause"):
            misses.append(f"{done.returncode}: {done.stderr}")
    assert misses == []


@pytest.mark.parametrize(
    ("way", "code", "inner"), [("exit", 7, SystemExit), ("raise", 1, KeyError)]
)
@pytest.mark.parametrize("name", ["shm", "tcp"])
def test_launch(name, way, code, inner):
    for _ in range(RUNS):
        with pytest.raises(WorkerError) as caught:
            launch(bodies.end, 3, name, args=(way, 1))
        error = caught.value
        assert (error.rank, error.exit_code, type(error.inner)) == (1, code, inner)
