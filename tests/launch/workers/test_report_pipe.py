"""The pipe by which ranks report how they failed, and the pipe on which they get their orders."""

import code
import contextlib
import os
import pickle
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from cobre_comm import (
    CollectiveFailed,
    InitializationFailed,
    InvalidCommunicator,
    WorkerError,
    launch,
    report_progress,
)
from cobre_comm.processes.loop import Inbox, LauncherLoop, Outbox
from cobre_comm.reports import frames
from cobre_comm.reports.report_pipe import VARIABLE, Report, _Reporter, claim, lost_ranks
from tests.launch.command import PROGRAMS, cobre

LARGE = bytes(range(256)) * 20_000  # many more bytes than a pipe holds


@pytest.fixture
def inbox():
    inbox = Inbox()
    yield inbox
    inbox.close()


def step_until(loop, is_done):
    deadline = time.monotonic() + 30
    while not is_done():
        assert time.monotonic() < deadline
        loop.step(time.monotonic() + 0.1)


def test_messages_of_any_length_come_whole_and_in_order(inbox, monkeypatch):
    heard, loop = [], LauncherLoop()
    inbox.serve(loop, heard.append)
    monkeypatch.setenv(VARIABLE, inbox.variables[VARIABLE])
    pipe, sent = claim(), [b"", b"one", LARGE, b"two"]
    assert VARIABLE not in os.environ
    assert not os.get_inheritable(inbox.writer)
    writer = threading.Thread(target=lambda: [pipe.send(message) for message in sent])
    writer.start()
    step_until(loop, lambda: len(heard) == len(sent))
    writer.join()
    assert heard == sent


def test_a_forked_child_says_nothing(inbox, monkeypatch):
    heard = []
    inbox.serve(LauncherLoop(), heard.append)
    monkeypatch.setenv(VARIABLE, inbox.variables[VARIABLE])
    pipe = claim()
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)
        pipe.send(b"from the child")
    pipe.send(b"from the rank")
    inbox.handed_over()
    inbox.read_all()
    assert heard == [b"from the rank"]


@pytest.mark.parametrize("wrong", ["", "x:1", "1", "{fd}:1", "999999:{inode}", "{other}:{inode}"])
def test_only_the_pipe_that_the_launcher_made_is_claimed(inbox, monkeypatch, tmp_path, wrong):
    fd, inode = inbox.variables[VARIABLE].split(":")
    with (tmp_path / "another").open("w") as other:
        monkeypatch.setenv(VARIABLE, wrong.format(fd=fd, inode=inode, other=other.fileno()))
        assert claim() is None


def test_a_rank_that_does_not_read_holds_up_nobody():
    loop = LauncherLoop()
    outbox = Outbox(loop)
    outbox.send(LARGE)
    outbox.send(b"more")
    loop.step(time.monotonic())  # this step writes as much as the pipe holds
    told = []
    reader = threading.Thread(
        target=lambda: told.extend(frames.receive(outbox.reader) for _ in "12")
    )
    reader.start()
    step_until(loop, lambda: not reader.is_alive())
    outbox.close()
    assert told == [LARGE, b"more"]
    assert frames.receive(outbox.reader) is None
    os.close(outbox.reader)


def test_which_ranks_an_error_tells_of():
    lost = CollectiveFailed("barrier", 0, "rank 1 died", [1])
    assert lost_ranks(lost) == (1,)
    assert lost_ranks(InvalidCommunicator("broken", [2])) == (2,)
    assert lost_ranks(pickle.loads(pickle.dumps(InitializationFailed("shm", "ended", [3])))) == (3,)
    assert lost_ranks(ValueError("rank 1 died, while others waited for it")) == ()
    wrapped = RuntimeError("training failed")
    wrapped.__context__ = lost
    assert Report.of(wrapped).lost == (1,)


class Odd(Exception):
    """An exception that cannot be compared, and has an attribute ``ranks`` of its own."""

    ranks = np.arange(2)

    def __eq__(self, other):
        raise TypeError("it cannot be compared")


def test_exceptions_are_told_apart_by_identity():
    again = Odd("again")
    again.__context__ = Odd("first")
    assert Report.of(again).lost == ()
    again.__context__.__context__ = again
    assert lost_ranks(again) == ()

    def stop(rank, payload):
        raise Odd("of the program")

    def work(comm):
        try:
            report_progress(1)
        except Odd:
            raise again from None

    with pytest.raises(WorkerError) as caught:
        launch(work, 1, on_progress=stop)
    assert caught.value.inner is again


def in_a_console():
    code.InteractiveInterpreter().runsource("undefined_name")


def in_a_coroutine():
    async def keep():
        try:
            raise NameError
        except NameError as error:
            sys.last_value, sys.last_traceback = error, error.__traceback__

    with contextlib.suppress(StopIteration):
        keep().send(None)


@pytest.mark.parametrize("show", [in_a_console, in_a_coroutine])
def test_an_exception_that_was_shown_has_not_ended_the_rank(show, monkeypatch):
    sent = []
    reporter = _Reporter(SimpleNamespace(send=sent.append), holds=False)
    monkeypatch.setattr(sys, "excepthook", reporter.uncaught)
    for name in ("last_exc", "last_type", "last_value", "last_traceback"):
        monkeypatch.setattr(sys, name, None, raising=False)
    show()
    assert isinstance(sys.last_value, NameError)
    reporter.at_exit()
    assert sent == []


def test_an_exit_follows_from_the_loss_that_was_caught_before(monkeypatch):
    monkeypatch.setattr("cobre_comm.reports.report_pipe._lost", (2,))
    assert Report.of(SystemExit(1)).lost == (2,)
    assert Report.of(ValueError("its own")).lost == ()


def test_a_rank_s_own_children_have_no_pipe():
    done = cobre("run", "-n", 2, PROGRAMS / "pipe_of_children.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == ["[0] none", "[1] none"]
