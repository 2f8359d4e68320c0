"""Hooks and fixtures of all test functions; classes of the suite get fixtures from their grid."""

import gc
import os
import re
import signal

import pytest
from cobre_kernels.machine.made import prepare

from cobre_comm.old_names import BEGINNING
from cobre_comm.testing.ranks.compile_once import once_in_all_ranks
from tests import rungs
from tests.grid import OUR_GRID, skip_unless_here, usual_and_slow

# Where colorama is installed, numba colours its errors; this variable stops that. Ranks get the
# variable, too.
os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")
# In this process every warning is an error. In ranks, the use of an old name is an error too.
os.environ.setdefault("PYTHONWARNINGS", f"error:{BEGINNING}:DeprecationWarning")
TABLE = "tests/conformance/test_table.py"
POINT = re.compile(r"(?:local|shm|tcp|mpi)[-a-z]*(?::[\d,x]+)?-\d+")  # a backend and its ranks
FIRST = {"planted": 0, "network": 1}  # the tests of these folders come first, in this order
# The tests of these folders need the compiled example: one worker runs all of them, so that the
# example is compiled once.
TOGETHER = dict.fromkeys(["tests/determinism", "tests/losses"], "tests/examples")
pytest_plugins = ["cobre_comm.testing.plugin"]


def pytest_sessionstart(session):
    """Compile kernels before a test's time runs, and let Ctrl-C end ranks.

    A process that a shell starts in the background ignores SIGINT and SIGQUIT. Launchers and ranks
    inherit this, so they would ignore these signals too.
    """
    for number, usual in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGQUIT, signal.SIG_DFL),
    ):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, usual)
    if not session.config.option.collectonly:
        prepare()


def group_of(nodeid):
    """Return the group of tests for one worker of pytest-xdist: a folder, or a pool of ranks."""
    path, _, name = nodeid.partition("::")
    folder = path.rpartition("/")[0]
    return POINT.findall(name)[-1] if path.endswith(TABLE) else TOGETHER.get(folder, folder)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Let one worker run a whole group, because pytest 9 ignores the mark `xdist_group`."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(nodeid)

    return Groups(config, log)


@pytest.hookimpl(tryfirst=True)  # before `-m` selects tests
def pytest_collection_modifyitems(items):
    """Mark what `make test` and CI leave out, and put the tests in order.

    The tests of a network come early: they are one group that mostly waits, and other workers run
    other tests meanwhile. The table of cases comes last. In the table, pools of many ranks come
    before pools of few, and MPI and local before other backends: such groups take long, and a
    worker that begins a long group last would end long after the other workers. Tests of one pool
    come one after the other, because only the pools that were used last are kept.
    """
    rungs.mark(items)

    def order(item):
        if not item.nodeid.partition("::")[0].endswith(TABLE):
            return FIRST.get(item.path.parent.name, 2), 0, 0, ""
        pool = group_of(item.nodeid)
        return 3, 1 if "mpi" in pool or "local" in pool else 2, -int(pool.rpartition("-")[2]), pool

    items.sort(key=order)


def pytest_collection_finish():
    """Make the tests that follow cheaper, in two ways.

    Python collects garbage less often, and never examines the collected tests, which live until the
    end anyway. If several workers of pytest-xdist or several ranks need the same cached function,
    one of them compiles it, and the others load it.
    """
    once_in_all_ranks()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


@pytest.fixture(params=usual_and_slow(OUR_GRID.backends))
def backend(request):
    return skip_unless_here(request.param)


@pytest.fixture(params=OUR_GRID.callers)
def caller(request):
    return request.param


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a program to a file, and returns its path."""

    def write(text):
        path = tmp_path / "program.py"
        path.write_text(text)
        return path

    return write
