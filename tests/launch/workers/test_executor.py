"""Ranks that run in the workers of an executor."""

import concurrent.futures
import contextlib
import multiprocessing
import os
import pickle
import signal
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from cobre_comm import CollectiveFailed, InitializationFailed, TcpConfig, WorkerError, launch
from cobre_comm.backends.tcp.process import IDENTITY, this_machine
from cobre_comm.launching import executor as executors
from cobre_comm.launching.replies import Failed
from cobre_comm.processes.job import Job
from cobre_comm.processes.port import LOOPBACK, ReservedPort
from cobre_comm.testing.cases.waiting import wait_until
from tests.launch.workers.bodies import (
    add,
    clean_exit,
    end,
    fails_beside_sleepers,
    leaves_at_once,
    mistaken,
    runs_on,
    unpicklable,
)

RANKS = 3


@pytest.fixture(scope="module")
def pool():
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(RANKS, mp_context=spawn) as pool:
        list(pool.map(time.sleep, [0.1] * RANKS))  # starts all workers of the pool
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


@pytest.mark.parametrize("way", ["in collectives", "asleep"])
def test_an_interrupted_caller_takes_its_ranks_back(pool, tmp_path, way):
    def interrupt():
        wait_until(lambda: len(list(tmp_path.iterdir())) == RANKS)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt, match=f"ended its {RANKS} ranks"):
        launch(runs_on, RANKS, args=(tmp_path, way), executor=pool)
    thread.join()


def test_ranks_that_compute_end_with_the_first_failure(pool):
    with pytest.raises(WorkerError, match=r"^rank 1 raised ValueError"):
        launch(fails_beside_sleepers, RANKS, args=(1,), executor=pool)


def test_a_function_that_the_executor_cannot_send(pool):
    with pytest.raises(RuntimeError, match=r"the executor could not run rank 0: .*lambda"):
        launch(lambda comm: comm.size, RANKS, executor=pool)


@pytest.mark.parametrize(("namespaces", "refused"), [((4, 5), False), ((4, 4), True)])
def test_processes_of_two_containers_are_two(namespaces, refused):
    """Processes of two containers may have the same host name and the same process id."""
    who = [IDENTITY.pack(this_machine(), namespace, 7, 123) for namespace in namespaces]
    meeting = SimpleNamespace(
        attach=lambda: None,
        exchange=lambda part, last: None,
        processes=dict(enumerate(who)),
    )
    told = pytest.raises(TypeError, match="two ranks have come in one process")
    with told if refused else contextlib.nullcontext():
        executors._assemble(meeting, [concurrent.futures.Future() for _ in who])


def test_a_task_of_a_launch_that_has_given_up_ends_at_once():
    refused = pytest.raises(InitializationFailed, match=r"start: \[Errno \d+\] Connection refused")
    with ReservedPort() as nobody_listens, refused:
        config = TcpConfig(rank=1, size=2, coordinator=LOOPBACK, port=nobody_listens.port)
        executors.run_rank(config, Job(1, "tcp"), add, (1,))


class Threads(concurrent.futures.Executor):
    """An executor of threads that ``launch`` does not recognise as an executor of threads."""

    def __init__(self):
        self.submit = concurrent.futures.ThreadPoolExecutor(2).submit


def test_two_ranks_in_one_process_are_refused():
    with pytest.raises(TypeError, match="two ranks have come in one process"):
        launch(add, 2, args=(1,), executor=Threads())


def test_a_rank_that_leaves_before_all_have_arrived():
    def attach():
        raise InitializationFailed("tcp", "rank 2 ended before all ranks had attached", [2])

    with pytest.raises(RuntimeError, match="could not run rank 1: it has left"):
        executors._assemble(SimpleNamespace(attach=attach), [])


def test_fewer_workers_than_ranks_are_refused(pool):
    with pytest.raises(ValueError, match=f"{RANKS} workers, and {RANKS + 1} ranks"):
        launch(add, RANKS + 1, args=(1,), executor=pool)


def test_busy_workers_are_an_error_that_counts_them(pool, monkeypatch):
    monkeypatch.setattr(executors, "COME_S", 2.0)
    busy = [pool.submit(time.sleep, 4), pool.submit(time.sleep, 4)]
    with pytest.raises(RuntimeError, match=f"1 of {RANKS} workers of the executor have come"):
        launch(add, RANKS, args=(1,), executor=pool)
    concurrent.futures.wait(busy)


def test_a_worker_that_dies_is_an_error_of_a_rank_without_a_cause():
    spawn = multiprocessing.get_context("spawn")
    with (
        concurrent.futures.ProcessPoolExecutor(RANKS, mp_context=spawn) as pool,
        pytest.raises(WorkerError) as caught,
    ):
        launch(end, RANKS, args=("SIGKILL", 2), executor=pool)
    # the pool ends its other workers, and the launcher may see their end first
    error = caught.value
    assert (error.inner, error.exit_code) == (None, None)


def test_a_worker_that_dies_while_its_task_stays_pending():
    """Dask keeps such a task pending, and waits for a new worker at the same address."""
    failed = Failed.of(CollectiveFailed("barrier", "rank 1 died", [1]))
    futures = [concurrent.futures.Future() for _ in range(2)]
    futures[0].set_result(pickle.dumps(failed))
    (mine, theirs), (kept, dies) = socket.socketpair(), socket.socketpair()
    with mine, theirs, kept:
        dies.close()
        meeting = SimpleNamespace(links=SimpleNamespace(control={1: mine, 2: kept}))
        with pytest.raises(WorkerError, match="rank 1 ended before it had sent a value") as caught:
            executors._outcomes(meeting, futures)
    assert caught.value.rank == 1


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
        launch(add, 2, backend="shm", args=(1,), executor=pool)


def test_progress_is_refused(pool):
    with pytest.raises(ValueError, match=r"on_progress is .* not for those of an executor"):
        launch(add, 2, args=(1,), executor=pool, on_progress=print)


class Client:
    """The part of Dask's client by which workers are chosen."""

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
    submits, here = executors.submitters(client, 2)
    for submit in submits:
        submit(print)
    assert client.submitted == [((print,), [f"tcp://127.0.0.1:{n}"]) for n in (1, 2)]
    assert here == "127.0.0.1"
    with pytest.raises(TypeError, match="threads of one process"):
        executors.submitters(Client("inproc://10.0.0.1/1/1"), 1)
