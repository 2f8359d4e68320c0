import contextvars
import functools
import multiprocessing
import os
import pickle
import re
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cobre_comm import (
    BackendKind,
    CollectiveFailed,
    InvalidBackend,
    LaunchResult,
    WorkerError,
    WorkerInfo,
    launch,
    report_progress,
)
from cobre_comm.launching.interrupt import outcome_of
from cobre_comm.launching.replies import Failed, RemoteError
from tests.grid import slow
from tests.launch.workers.bodies import (
    REPORTS,
    Undoes,
    add,
    clean_exit,
    end,
    exits,
    exits_with_0,
    interrupts,
    large,
    leaves_at_once,
    mistaken,
    nested,
    one_leaves,
    progress,
    progress_amid_progress,
    progress_of_threads,
    puts_its_rank,
    raises,
    raises_long,
    returns,
    sleeper,
    surroundings,
    unpicklable,
)


@pytest.mark.quick
@pytest.mark.parametrize("size", [1, 2])
def test_value_of_rank_0_and_what_workers_did(size):
    result = launch(add, size, args=(10,))
    assert isinstance(result, LaunchResult)
    assert result.values == [10 * size * (size + 1) / 2] * size
    assert result.value == result.values[0]
    assert [worker.rank for worker in result.workers] == list(range(size))
    assert len({worker.pid for worker in result.workers}) == size
    assert (os.getpid() in {worker.pid for worker in result.workers}) == (size == 1)
    assert {worker.backend for worker in result.workers} == {"local" if size == 1 else "shm"}
    assert all(0 < worker.wall_time_s < 60 for worker in result.workers)
    assert isinstance(pickle.loads(pickle.dumps(result)).workers[0], WorkerInfo)


def test_a_lambda_and_what_it_holds_go_where_cloudpickle_is_installed():
    class Local:
        def __init__(self, number):
            self.number = number

    def square(comm, local):
        return Local((comm.rank + local.number) ** 2)

    values = launch(lambda *arguments: square(*arguments), 2, args=(Local(1),)).values
    assert [(type(value), value.number) for value in values] == [(Local, n) for n in (1, 4)]


def test_environment_of_workers(monkeypatch):
    monkeypatch.setenv("COBRE_COMM_BACKEND", "tcp")
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    before = dict(os.environ)
    seen = launch(surroundings, 2, backend=BackendKind.SHM, timeout=12).value
    assert seen["COBRE_COMM_BACKEND"] == "shm"
    assert seen["COBRE_SHM_TIMEOUT_SECS"] == "12"
    assert int(seen["NUMBA_NUM_THREADS"]) >= 1
    assert seen["COBRE_SHM_NAME"].startswith("/cobre-")
    assert dict(os.environ) == before


@pytest.mark.parametrize("size", [1, 2])
def test_progress_comes_in_order_and_in_the_parent(size):
    seen = []
    thread = threading.current_thread()

    def on_progress(rank, payload):
        assert threading.current_thread() is thread
        seen.append((rank, payload))

    assert launch(progress, size, args=(50,), on_progress=on_progress).value == "done"
    for rank in range(size):
        assert [p for r, p in seen if r == rank] == [(rank, n) for n in range(50)]


@pytest.mark.parametrize("size", [1, 2])
def test_a_signal_handler_reports_amid_a_report(size):
    heard = []
    launched = launch(
        progress_amid_progress, size, on_progress=lambda *report: heard.append(report)
    )
    for rank, calls in enumerate(launched.values):
        of_rank = [payload for who, payload in heard if who == rank]
        assert [each["program"] for each in of_rank if "program" in each] == list(range(REPORTS))
        of_handlers = [each["handler"] for each in of_rank if "handler" in each]
        # the order may differ, because one handler may interrupt another
        assert sorted(of_handlers) == list(range(calls))


def test_threads_of_a_rank_report_whole_messages():
    heard = []
    launch(
        progress_of_threads, 2, on_progress=lambda rank, payload: heard.append((rank, *payload[:2]))
    )
    assert sorted(heard) == [(r, t, n) for r in range(2) for t in range(4) for n in range(50)]


def test_progress_outside_a_worker_is_nothing():
    report_progress("nobody listens")


@pytest.mark.parametrize("size", [1, 2])
def test_an_exception_in_on_progress_ends_the_job(size):
    def on_progress(rank, payload):
        raise LookupError(rank)

    with pytest.raises(LookupError):
        launch(sleeper, size, on_progress=on_progress)


@pytest.mark.parametrize("actor", [1, slow(0)])
def test_first_failure_is_the_workers_own_exception(actor):
    with pytest.raises(WorkerError) as caught:
        launch(end, 2, args=("raise", actor))
    error = caught.value
    assert (error.rank, error.exit_code) == (actor, 1)
    assert isinstance(error.inner, ValueError)
    assert error.inner.args == ("no such case\nline 2",)
    assert 'raise ValueError("no such case' in str(error.inner.__cause__)
    assert error.__cause__ is error.inner


def test_one_mistake_of_all_workers_names_all():
    with pytest.raises(WorkerError, match=r"^ranks 0 and 1 raised ValueError: no such") as caught:
        launch(mistaken, 2, args=((0, 1),))
    assert caught.value.ranks == (0, 1)
    assert caught.value.rank in (0, 1)
    assert pickle.loads(pickle.dumps(caught.value)).ranks == (0, 1)


def test_the_others_are_told_what_a_worker_raised():
    told = set()
    for _ in range(5):  # on a busy machine the other ranks may be ended before they report
        with pytest.raises(WorkerError, match=r"^rank 1 raised ValueError: no such case"):
            launch(mistaken, 2, args=((1,),), on_progress=lambda _, text: told.add(text))
        if told:
            break
    assert told == {"barrier failed: rank 1 raised ValueError: no such case"}


@pytest.mark.parametrize(
    ("way", "code", "inner"),
    [
        ("SIGKILL", -9, type(None)),
        ("sys.exit", 3, SystemExit),
        ("fork", -9, type(None)),
    ],
)
def test_ways_to_fail(way, code, inner):
    with pytest.raises(WorkerError) as caught:
        launch(end, 2, args=(way, 1))
    assert (caught.value.rank, caught.value.exit_code) == (1, code)
    assert type(caught.value.inner) is inner


@pytest.mark.parametrize("what", [exits, interrupts])
@pytest.mark.parametrize("way", [raises, returns])
def test_unpickling_that_exits_is_the_failure_of_its_rank(way, what):
    with pytest.raises(WorkerError) as caught:
        launch(way, 2, args=(Undoes, what))
    assert caught.value.rank == 1
    if way is raises:
        assert type(caught.value.inner) is Undoes
        assert str(caught.value.inner) == "made here"
    else:
        assert type(caught.value.inner) is (SystemExit if what is exits else KeyboardInterrupt)


def test_a_ctrl_c_while_foreign_code_runs_is_raised():
    error = outcome_of(interrupts)[1]
    assert type(error) is KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        outcome_of(lambda: os.kill(os.getpid(), signal.SIGINT))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_long_text_is_cut_and_says_so():
    failed = Failed.of(ValueError("x" * 30_000_000))
    assert len(pickle.dumps(failed)) < 100_000
    came = failed.exception()
    assert type(came) is ValueError
    assert re.fullmatch(r"x+\.\.\. \(29980\d\d\d more characters\)", str(came))
    assert str(Failed.of(came).exception()) == str(came)


@pytest.mark.slow
def test_a_long_text_keeps_its_rank():
    with pytest.raises(WorkerError, match="rank 1 raised ValueError: xxx") as caught:
        launch(raises_long, 2, args=(200_000_000,))
    assert caught.value.rank == 1


@pytest.mark.parametrize("count", [5_000_000, slow(2**30 + 2**28)])
def test_large_value(count):
    value = launch(large, 2, args=(count,)).values[1]
    assert value.nbytes == count
    assert (value[:512] == np.arange(512, dtype=np.uint8)).all()


def test_unpicklable_value_is_named():
    with pytest.raises(WorkerError, match=r"return value of rank \d is a _thread\.lock") as caught:
        launch(unpicklable, 2)
    assert isinstance(caught.value.inner, TypeError)
    assert isinstance(launch(unpicklable, 1).value, type(threading.Lock()))


@pytest.mark.parametrize(("fn", "size"), [(clean_exit, 1), (clean_exit, 2), (leaves_at_once, 2)])
def test_an_exit_with_0_is_no_value(fn, size):
    with pytest.raises(WorkerError, match="the function has not returned a value") as caught:
        launch(fn, size)
    assert caught.value.exit_code == 0
    assert type(caught.value.inner) is (SystemExit if fn is clean_exit else type(None))


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_an_argument_that_exits_while_it_is_unpickled_is_a_failure(backend):
    with pytest.raises(WorkerError, match="the function has not returned a value") as caught:
        launch(add, 2, backend=backend, args=(Undoes(exits_with_0),))
    assert caught.value.exit_code == 0


def test_a_value_that_exits_while_it_is_unpickled_is_a_failure():
    with pytest.raises(WorkerError, match="rank 1 raised SystemExit: 0") as caught:
        launch(returns, 2, args=(Undoes, exits_with_0))
    assert (caught.value.rank, caught.value.exit_code) == (1, 0)


def test_a_rank_that_leaves_with_0_is_a_loss_which_others_survive():
    result = launch(one_leaves, 2, survive=True)
    assert result.values == [1, None]
    assert [(lost.rank, lost.exit_code) for lost in result.lost] == [(1, 0)]


def test_local_failure_is_a_worker_error_too():
    with pytest.raises(WorkerError) as caught:
        launch(end, 1, args=("raise", 0))
    assert (caught.value.rank, caught.value.exit_code) == (0, 1)
    assert isinstance(caught.value.__cause__, ValueError)
    report_progress("no worker is left in this process")
    assert launch(add, np.int64(1), args=(1,)).value == 1.0


@pytest.mark.parametrize("size", [1, 2])
def test_nested_launch_is_refused(size):
    with pytest.raises(WorkerError, match=r"comm\.split.* `cobre-comm run` in") as caught:
        launch(nested, size)
    assert isinstance(caught.value.inner, RuntimeError)


@pytest.fixture
def nothing_starts(monkeypatch):
    monkeypatch.setattr(
        "cobre_comm.launching.launched.LaunchedAttempt", lambda *_: pytest.fail("started")
    )


@pytest.mark.usefixtures("nothing_starts")
@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"size": 0}, ValueError, "between 1 and 4096, got 0"),
        (
            {"size": 2, "timeout": "3"},
            TypeError,
            "the timeout must be a number of seconds, got '3'",
        ),
        ({"size": -1}, ValueError, "got -1"),
        ({"size": 5000}, ValueError, "got 5000"),
        ({"size": 2.0}, TypeError, "size must be an integer, got 2.0"),
        ({"size": True}, TypeError, "size must be an integer, got True"),
        ({"size": 2, "backend": "smoke"}, InvalidBackend, "smoke"),
        ({"size": 2, "backend": 3}, TypeError, "backend must be a name"),
        ({"size": 2, "backend": "local"}, ValueError, "one process and cannot have 2 ranks"),
        ({"size": 2, "backend": "mpi"}, ValueError, "cobre-comm run -n 2 --backend mpi"),
        ({"size": 2, "timeout": -1}, ValueError, "got -1"),
        ({"size": 2, "args": 5}, TypeError, "args must be a tuple"),
        ({"size": 2, "fn": 5}, TypeError, "fn must be callable"),
        ({"size": 2, "fn": lambda comm: 0}, ValueError, "lambda.*top of a .py .*install cloudpick"),
        ({"size": 2, "fn": functools.partial(lambda c: 0)}, ValueError, "cannot import .*lambda"),
    ],
)
def test_bad_arguments_start_nothing(arguments, error, said, monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(error, match=said):
        launch(**({"fn": add} | arguments))


def test_function_that_holds_what_cannot_be_sent_starts_nothing(nothing_starts):
    lock = threading.Lock()

    def inner(comm):
        return lock

    with pytest.raises(ValueError, match=r"cannot import .*inner; define it .*cannot pickle"):
        launch(inner, 2)


def test_argument_that_does_not_pickle():
    with pytest.raises(TypeError, match="cannot be sent to workers, so let the function make it"):
        launch(add, 2, args=(threading.Lock(),))


def test_a_program_that_forks_elsewhere_launches_and_stays_as_it_is():
    """If a program has the start method "fork", so have the processes of multiprocessing."""
    chosen = multiprocessing.get_start_method(allow_none=True)
    multiprocessing.set_start_method("fork", force=True)
    try:
        assert launch(add, 2, args=(1,)).value == 3.0
        assert multiprocessing.get_start_method() == "fork"
    finally:
        multiprocessing.set_start_method(chosen, force=True)


def test_launches_at_once_touch_nothing_that_is_global():
    chosen, environ = multiprocessing.get_start_method(allow_none=True), dict(os.environ)
    results, changes = [], []
    threads = [
        threading.Thread(target=lambda n=n: results.append(launch(add, 2, args=(n,)).value))
        for n in range(2)
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        changes += [
            name for name in {*os.environ, *environ} if os.environ.get(name) != environ.get(name)
        ]
        threads[0].join(0.01)
    assert sorted(results) == [0.0, 3.0]
    assert changes == []
    assert multiprocessing.get_start_method(allow_none=True) == chosen


def test_a_queue_of_multiprocessing_may_be_an_argument():
    queue = multiprocessing.get_context("spawn").Queue()
    launch(puts_its_rank, 2, args=(queue,))
    assert sorted(queue.get(timeout=30) for _ in range(2)) == [0, 1]


def test_errors_travel():
    error = CollectiveFailed("barrier", 0, "rank 1 died", [1])
    failure = Failed.of(error).exception()
    assert isinstance(failure, CollectiveFailed)
    assert failure.ranks == (1,)


class Own(Exception):
    """An exception of the program's own script."""


def test_an_exception_of_the_script_keeps_its_class(monkeypatch):
    """A rank has imported the script as ``__mp_main__``, but in the program it is ``__main__``."""
    monkeypatch.setitem(sys.modules, "__mp_main__", sys.modules[__name__])
    monkeypatch.setattr(Own, "__module__", "__mp_main__")
    failed = Failed.of(Own("stage 3"))
    monkeypatch.setattr(Own, "__module__", "__main__")
    assert type(failed.exception()) is Own


class Stubborn(Exception):
    """An exception that can be pickled, but not unpickled."""

    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


class Silent(Exception):
    """An exception that has no text, and cannot be pickled."""

    def __str__(self):
        return str(1 / 0)

    def __reduce__(self):
        raise TypeError


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (Stubborn("one", "two"), Stubborn, "one and two"),
        (ValueError("busy", threading.Lock()), ValueError, r"\('busy', <unlocked _thread.lock"),
        (type("Local", (LookupError,), {})("where"), RemoteError, r"test_launch\.Local: where"),
    ],
)
def test_errors_that_do_not_pickle_keep_their_class_or_its_name(error, kind, text, monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    try:
        raise error
    except Exception as raised:
        came = Failed.of(raised).exception()
    assert type(came) is kind
    assert Failed.of(Silent()).report.text == "<str() raised ZeroDivisionError>"
    assert re.search(text, str(came))
    assert "raise error" in str(came.__cause__)


def reports(comm, who, count):
    for n in range(count):
        report_progress((who, n))
        meeting.wait(TIME_S)
    return who


meeting = threading.Barrier(2)
TIME_S = 60


def called_at_once(*calls):
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result(TIME_S) for future in [pool.submit(call) for call in calls]]


def test_launches_of_one_rank_in_two_threads_keep_their_reports_apart():
    heard = {"a": [], "b": []}

    def call(who):
        def hear(rank, payload):
            heard[who].append(payload)

        return launch(reports, 1, args=(who, 4), on_progress=hear).value

    assert called_at_once(lambda: call("a"), lambda: call("b")) == ["a", "b"]
    assert heard == {who: [(who, n) for n in range(4)] for who in "ab"}


def test_workers_start_while_another_thread_is_a_rank():
    def holds(comm):
        meeting.wait(TIME_S)
        meeting.wait(TIME_S)
        return "held"

    def starts():
        meeting.wait(TIME_S)
        try:
            return launch(add, 2, args=(1,)).values
        finally:
            meeting.wait(TIME_S)

    assert called_at_once(lambda: launch(holds, 1).value, starts) == ["held", [3.0, 3.0]]


def test_a_thread_of_the_function_reports_to_its_launch():
    older = ThreadPoolExecutor(1)
    older.submit(int).result()

    def starts(comm):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(report_progress, "its thread").result()
        older.submit(report_progress, "a thread of the program").result()
        older.submit(contextvars.copy_context().run, report_progress, "its context").result()

    heard = []
    launch(starts, 1, on_progress=lambda rank, payload: heard.append(payload))
    older.shutdown()
    assert heard == ["its thread", "its context"]


def test_a_thread_that_may_belong_to_two_launches_is_told():
    def starts(comm):
        meeting.wait(TIME_S)
        with ThreadPoolExecutor(1) as pool:
            told = pool.submit(report_progress, 1).exception()
        meeting.wait(TIME_S)
        return str(told)

    call = functools.partial(launch, starts, 1)
    for told in called_at_once(call, call):
        assert "which of 2 launches this thread belongs to" in told.value
