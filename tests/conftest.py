"""What test functions share; the classes of the suite have these from their grid."""

import os
import signal

import pytest

from cobre_comm.backends import NAMES
from cobre_comm.compile.warm import warm_up
from tests.grid import OUR_GRID, skip_unless_here, usual_and_slow

pytest_plugins = ["cobre_comm.testing.plugin"]


def pytest_sessionstart(session):
    """Compile before any test's time runs; undo what a shell does to commands in the background.

    Launchers would pass it to ranks.
    """
    for number, usual in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGQUIT, signal.SIG_DFL),
    ):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, usual)
    if not session.config.option.collectonly:
        warm_up(NAMES, os.environ)


def pytest_collection_modifyitems(items):
    """Say what one worker of pytest-xdist runs: the tests of a folder, or of a pool of ranks.

    The folder that compiles most comes first, so that no worker ends long after the others.
    """
    for item in items:
        trial = getattr(item, "callspec", None) and item.callspec.params.get("trial")
        words = (trial.backend, trial.size) if trial else item.path.parts[-3:-1]
        item.add_marker(pytest.mark.xdist_group(" ".join(map(str, words))))
    items.sort(key=lambda item: item.path.parent.name != "planted")


@pytest.fixture(params=usual_and_slow(OUR_GRID.backends))
def backend(request):
    return skip_unless_here(request.param)


@pytest.fixture(params=OUR_GRID.callers)
def caller(request):
    return request.param
