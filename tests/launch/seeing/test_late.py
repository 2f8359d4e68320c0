"""A line on stderr names a rank that is late, but alive, even if logging is not configured."""

import itertools
import re
import time
from types import SimpleNamespace

import pytest

from cobre_comm.journal.copied import PastCall
from cobre_comm.journal.telling import last_calls
from tests.command import python
from tests.grid import some
from tests.launch.command import PROGRAMS, cobre, environment
from tests.launch.mpi_libraries import on

LATE = PROGRAMS / "late.py"
LINE = re.compile(
    r"(?:\[\d\] )?rank 1 is late: rank [02] has waited for ([\d.]+) s in #3 barrier\(\); "
    r"rank 1(?:, its last calls: #|: its calls cannot be read here).*"
    r"; more: cobre-comm explain late"
)
LATE_S, PAUSE_S = 0.25, 2.5
SOON = {"COBRE_TEST_LATE_SECS": str(LATE_S)}
BACKENDS = ("shm", "tcp", "tcp-flat", "mpi-mpich", "mpi-openmpi", "mpi-mpich:0,1,2")
ALL = list(itertools.product(BACKENDS, ("python", "njit")))


def check(stderr, nodes_that_wait):
    lines = stderr.splitlines()
    waits = [float(LINE.match(line)[1]) for line in lines if LINE.match(line)]
    assert len(waits) >= 2, stderr
    for number, waited_s in enumerate(sorted(waits)):
        assert waited_s > 0.99 * LATE_S * 2 ** (number // nodes_that_wait), stderr


@pytest.mark.parametrize(("name", "caller"), some([("shm", "python"), ("tcp-flat", "python")], ALL))
def test_under_run(name, caller):
    option, variables = on(name)
    done = cobre("run", "-n", 3, *option, LATE, caller, PAUSE_S, **variables, **SOON)
    assert done.returncode == 0, done
    check(done.stderr, 2 if name.endswith(("flat", "0,1,2")) else 1)


@pytest.mark.parametrize(
    ("name", "caller"),
    some([("shm", "njit")], [row for row in ALL if not row[0].startswith("mpi")]),
)
def test_under_launch(name, caller):
    (_, kind), variables = on(name)
    env = environment(**variables, **SOON)
    done = python(str(LATE), caller, str(PAUSE_S), kind, env=env)
    check(done.stderr, 2 if name.endswith("flat") else 1)


INTERACTIVE = """
from cobre_comm import launch
def f(comm):
    import time
    comm.barrier()
    comm.sum(1)
    if comm.rank == 1: time.sleep(%s)
    comm.barrier()
launch(f, 3)
"""


@pytest.mark.slow
def test_under_launch_of_an_interactive_program():
    done = python("-c", INTERACTIVE % PAUSE_S, env=environment(**SOON))
    check(done.stderr, 1)


@pytest.mark.quiet
def test_the_first_line_comes_after_ten_seconds():
    done = cobre("run", "-n", 3, LATE, "python", 13)
    [waited_s] = [float(found[1]) for found in map(LINE.match, done.stderr.splitlines()) if found]
    assert 10 <= waited_s < 13.5


@pytest.mark.parametrize("hours", [-80, 80])
def test_times_of_another_clock_are_not_told(hours):
    """In a time namespace a rank has another clock: a time 80 hours away is not told as an age."""
    now = time.monotonic_ns()
    call = PastCall(3, "barrier", "", "", 0, now, now + 1000)
    journal = SimpleNamespace(read_ns=now, rank=1, calls=[call], ended=0, awaited=None)
    assert " s ago" in last_calls(journal)
    other = PastCall(3, "barrier", "", "", 0, now + hours * 3600 * 10**9, None)
    journal.calls = [other]
    assert "entered at a time of its own clock" in last_calls(journal)
