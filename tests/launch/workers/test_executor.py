"""Ranks that run in the workers of an executor."""

import concurrent.futures
import contextlib
import multiprocessing
import os
import signal
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from cobre_comm import WorkerError, launch
from cobre_comm.backends.tcp.process import IDENTITY, this_machine
from cobre_comm.launching.executor import hosts, invitation
from cobre_comm.launching.executor.call import GuestAttempt
from cobre_comm.processes.job import Job
from cobre_comm.processes.port import LOOPBACK
from cobre_comm.testing.cases.waiting import wait_until
from tests.launch.workers.bodies import (
    add,
    clean_exit,
    end,
    leaves_at_once,
    mistaken,
    progress,
    progress_of_threads,
    unpicklable,
    until_asked,
)
from tests.launch.workers.test_launch import handlers_report_too

RANKS = 3


@pytest.fixture(scope="module")
def pool():
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(RANKS, mp_context=spawn) as pool:
        list(pool.map(time.sleep, [0.1] * RANKS))  # starts them all
        yield pool


@pytest.fixture(autouse=True)
def workers_stay_usable(request):
    if "pool" not in request.fixturenames:
        yield
        return
    pool = request.getfixturevalue("pool")
    yield
    result = launch(add, RANKS, args=(10,), executor=pool)
    assert result.values == [60.0] * RANKS
    assert {worker.pid for worker in result.workers} == set(pool._processes)
    assert {worker.backend for worker in result.workers} == {"tcp"}


def test_one_mistake_of_all_ranks_names_all(pool):
    with pytest.raises(WorkerError, match=r"^ranks 0-2 raised ValueError: no such case"):
        launch(mistaken, RANKS, args=((0, 1, 2),), executor=pool)


def test_progress_comes_back_in_order_per_rank(pool):
    heard = []
    result = launch(progress, RANKS, args=(3,), executor=pool,
                    on_progress=lambda rank, payload: heard.append((rank, payload)))  # fmt: skip
    assert result.values == ["done"] * RANKS
    for rank in range(RANKS):
        assert [payload for who, payload in heard if who == rank] == [(rank, n) for n in range(3)]


def test_a_signal_handler_reports_amid_a_report(pool):
    handlers_report_too(2, executor=pool)


def test_threads_of_a_rank_report_whole_messages(pool):
    heard = []
    launch(progress_of_threads, 2, executor=pool,
           on_progress=lambda rank, payload: heard.append((rank, *payload[:2])))  # fmt: skip
    assert sorted(heard) == [(r, t, n) for r in range(2) for t in range(4) for n in range(50)]


def test_a_connection_that_says_nothing_ends_with_the_launch(pool, monkeypatch):
    listeners, create = [], socket.create_server

    def noted(*arguments, **options):
        listeners.append(create(*arguments, **options))
        return listeners[-1]

    silent, before = [], set(threading.enumerate())

    def on_progress(rank, payload):
        silent.append(socket.create_connection(listeners[0].getsockname()))
        assert wait_until(lambda: silent[-1].recv(1))  # the challenge, so a thread waits for us

    monkeypatch.setattr("cobre_comm.launching.executor.call.socket.create_server", noted)
    launch(progress, RANKS, args=(1,), executor=pool, on_progress=on_progress)
    wait_until(lambda: set(threading.enumerate()) <= before, limit_s=10)
    left = set(threading.enumerate()) - before
    for connection in silent:
        connection.close()
    assert left == set()


@pytest.mark.parametrize(("fn", "inner"), [(clean_exit, SystemExit), (leaves_at_once, type(None))])
def test_an_exit_with_0_is_no_value(fn, inner):
    spawn = multiprocessing.get_context("spawn")
    with (
        concurrent.futures.ProcessPoolExecutor(2, mp_context=spawn) as pool,
        pytest.raises(WorkerError) as caught,
    ):
        launch(fn, 2, executor=pool)
    assert type(caught.value.inner) is inner


def test_the_first_failure_and_its_cause(pool):
    with pytest.raises(WorkerError) as caught:
        launch(end, RANKS, args=("raise", 1), executor=pool)
    assert caught.value.rank == 1
    assert caught.value.inner.args == ("no such case\nline 2",)


def test_a_value_that_cannot_be_sent(pool):
    with pytest.raises(WorkerError, match=r"return value of rank \d is a _thread\.lock"):
        launch(unpicklable, RANKS, executor=pool)


def test_an_interrupted_caller_takes_its_ranks_back(pool):
    once = iter([threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))])
    with pytest.raises(KeyboardInterrupt, match=f"ended its {RANKS} ranks"):
        launch(until_asked, RANKS, executor=pool,
               on_progress=lambda rank, payload: [timer.start() for timer in once])  # fmt: skip


def test_an_interrupt_while_workers_are_released_leaves_nothing(pool, monkeypatch):
    monkeypatch.setattr(GuestAttempt, "_running", lambda _: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        launch(add, RANKS, args=(1,), executor=pool)


def test_a_connection_is_not_closed_amid_a_message():
    ours, theirs = socket.socketpair()
    message = bytes(range(256)) * 40_000  # more than the kernel takes before somebody reads
    with (
        invitation.GuestConnection(ours) as connection,
        invitation.GuestConnection(theirs) as worker,
        concurrent.futures.ThreadPoolExecutor(2) as threads,
    ):
        sent = threads.submit(connection.send_bytes, message)
        assert worker.poll(60)
        closed = threads.submit(connection.close)
        concurrent.futures.wait([closed], 0.2)
        assert not closed.done()
        assert worker.recv_bytes() == message
        assert (sent.result(60), closed.result(60)) == (None, None)
        with pytest.raises(OSError, match="closed"):
            connection.send_bytes(b"")


@pytest.mark.parametrize(("namespaces", "refused"), [((4, 5), False), ((4, 4), True)])
def test_processes_of_two_containers_are_two(namespaces, refused):
    """They may share the host name, and have the same process id."""
    who = [IDENTITY.pack(this_machine(), namespace, 7, 123) for namespace in namespaces]
    guests = object.__new__(GuestAttempt)
    guests._job = Job(2, "tcp")
    guests.ranks = [SimpleNamespace(hello=invitation.Hello(r, who[r], 1)) for r in (0, 1)]
    told = pytest.raises(TypeError, match="two ranks have come in one process")
    with told if refused else contextlib.nullcontext():
        assert [hello.rank for hello in guests._await_all()] == [0, 1]


def test_fewer_workers_than_ranks_are_refused(pool):
    with pytest.raises(ValueError, match=f"{RANKS} workers, and {RANKS + 1} ranks"):
        launch(add, RANKS + 1, args=(1,), executor=pool)


def test_busy_workers_are_an_error_that_counts_them(pool, monkeypatch):
    monkeypatch.setattr("cobre_comm.launching.executor.call.COME_S", 2.0)
    busy = [pool.submit(time.sleep, 4), pool.submit(time.sleep, 4)]
    with pytest.raises(RuntimeError, match=f"1 of {RANKS} workers of the executor have come"):
        launch(add, RANKS, args=(1,), executor=pool)
    concurrent.futures.wait(busy)


def test_a_launcher_that_says_nothing_does_not_keep_a_worker(monkeypatch):
    monkeypatch.setattr(invitation, "CONNECT_S", 0.2)
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(TimeoutError, match=f"{port}.* says nothing"):
            invitation.connect(invitation.Invitation(LOOPBACK, port, b"", 0, False))


def test_a_worker_that_dies_is_an_error_of_a_rank_without_a_cause():
    spawn = multiprocessing.get_context("spawn")
    with (
        concurrent.futures.ProcessPoolExecutor(RANKS, mp_context=spawn) as pool,
        pytest.raises(WorkerError) as caught,
    ):
        launch(end, RANKS, args=("SIGKILL", 2), executor=pool)
    assert caught.value.inner is None  # the pool then ends its others: their end may be seen first


@pytest.mark.parametrize(
    ("executor", "error", "says"),
    [
        (concurrent.futures.ThreadPoolExecutor(2), TypeError, "threads of one process"),
        ("a pool", TypeError, "must be a concurrent.futures.Executor"),
    ],
)
def test_what_cannot_hold_ranks(executor, error, says):
    with pytest.raises(error, match=says):
        launch(add, 2, args=(1,), executor=executor)


def test_only_tcp(pool):
    with pytest.raises(ValueError, match="meet over tcp, not 'shm'"):
        launch(add, 2, "shm", args=(1,), executor=pool)


class Client:
    """The part of Dask's client that chooses workers."""

    __module__ = "distributed.client"

    def __init__(self, *addresses):
        self.submitted = []
        self._addresses = addresses

    def nthreads(self):
        return dict.fromkeys(self._addresses, 1)

    def submit(self, *call, **options):
        self.submitted.append((call, options["workers"]))


def test_each_rank_goes_to_a_worker_of_dask_of_its_own():
    client = Client("tcp://127.0.0.1:2", "tcp://127.0.0.1:1", "tcp://127.0.0.1:3")
    submits, here = hosts.submitters(client, 2)
    for submit in submits:
        submit(print)
    assert client.submitted == [((print,), [f"tcp://127.0.0.1:{n}"]) for n in (1, 2)]
    assert here == "127.0.0.1"
    with pytest.raises(TypeError, match="threads of one process"):
        hosts.submitters(Client("inproc://10.0.0.1/1/1"), 1)
