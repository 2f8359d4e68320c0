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


@pytest.fixture(params=usual_and_slow(OUR_GRID.backends))
def backend(request):
    return skip_unless_here(request.param)


@pytest.fixture(params=OUR_GRID.callers)
def caller(request):
    return request.param
