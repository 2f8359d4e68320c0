"""Ranks of ``launch(executor=...)``: each rank is a task that the executor runs in a worker.

The executor brings the function and its arguments to a worker, and the outcome back. It offers
tasks no way to find each other, so the tasks first meet the launcher, in a rendezvous in which the
launcher is rank 0, and rank r of the job is rank r + 1. The launcher counts the tasks that have
arrived, and tells each task where rank 0 of the job will listen. The links of this rendezvous stay
open. If a link ends before the launcher has ended it, the worker has died. When the launcher itself
ends a link, the launcher no longer awaits that rank.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import ctypes
import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing.connection import wait
from typing import Any
from urllib.parse import urlsplit

from cobre_comm.backends.spec import Rendezvous
from cobre_comm.backends.tcp.backend import TcpBackend
from cobre_comm.backends.tcp.foreign import CONNECT_TIMEOUT_MS
from cobre_comm.backends.tcp.rendezvous import meet
from cobre_comm.backends.tcp.rendezvous.coordinator import Coordinator
from cobre_comm.config import TcpConfig
from cobre_comm.errors import InitializationFailed, WorkerError
from cobre_comm.launching.interrupt import outcome_of
from cobre_comm.launching.replies import Done, Failed, exit_code_in, message_in, value_message
from cobre_comm.launching.reporting import as_rank, is_rank
from cobre_comm.processes.endings import Ending, first_failure, ranks_alike
from cobre_comm.processes.environment import rendezvous_variables
from cobre_comm.processes.escalation import CULPRIT_S, LAST_WORDS_S, where_crowded
from cobre_comm.processes.job import Job
from cobre_comm.processes.port import LOOPBACK, ReservedPort

COME_S = 60.0  # from the order to the arrival of the last worker
SAY_S = 3.0  # the time that interrupted ranks get to end
FETCH_S = 600.0  # the time for Dask to bring the outcome of a rank that has ended
LOOK_S = 0.02  # between two looks at the futures
PLACE_BYTES = 64  # bytes for an address and a port
_LOCAL = ("concurrent", "loky", "joblib")  # executors with workers on this machine


def call_on_executor(
    executor: Any, job: Job, fn: Callable[..., Any], args: tuple[Any, ...]
) -> dict[int, Done]:
    """Call a function on ranks in the workers of an executor; return each rank's last message.

    ``RuntimeError`` is raised if a rank does not arrive, ``TypeError`` if two ranks arrive in one
    process.
    """
    submits, here = submitters(executor, job.size)
    futures: list[Any] = []
    with socket.create_server((here, 0)) as listener:
        limit_ms = int(1000 * COME_S + 1000)  # _assemble gives up before that, and says why
        config = TcpConfig(
            rank=0, size=job.size + 1, coordinator=here, port=listener.getsockname()[1],
            token=job.token, connect_timeout_ms=limit_ms,
        )  # fmt: skip
        meeting = Coordinator(config, listener)
        try:
            try:
                for rank, submit in enumerate(submits):
                    futures.append(submit(run_rank, replace(config, rank=rank + 1), job, fn, args))
                _assemble(meeting, futures)
            finally:
                _hang_up(listener)
                meeting.close()
            return _outcomes(meeting, futures)
        finally:
            _release(meeting, futures)


def _assemble(meeting: Coordinator, futures: list[Any]) -> None:
    """Wait until all tasks have arrived, each in its own process; tell them where to meet."""
    deadline = time.monotonic() + COME_S

    def look() -> None:
        for rank, future in enumerate(futures):
            error = outcome_of(future.result)[1] if future.done() else None
            if error is not None:
                raise RuntimeError(f"the executor could not run rank {rank}: {error}") from error
        if time.monotonic() > deadline:
            raise RuntimeError(
                f"{len(meeting.links.control)} of {len(futures)} workers of the executor have come "
                f"within {COME_S:.0f} s: the others are busy, or cannot reach this process; every "
                "rank needs a free worker at the same time"
            )

    meeting.meanwhile = look
    try:
        meeting.attach()
        if len(set(meeting.processes.values())) < len(futures):
            raise TypeError("two ranks have come in one process; a rank needs a worker of its own")
        meeting.exchange(bytes(PLACE_BYTES), last=True)
    except InitializationFailed as error:
        if not error.ranks:
            raise
        lost = error.ranks[0] - 1
        raise RuntimeError(f"the executor could not run rank {lost}: it has left") from error


def _outcomes(meeting: Coordinator, futures: list[Any]) -> dict[int, Done]:
    """Return the last message of each rank, or raise the first failure.

    After a failure the other ranks get a moment to end by themselves. This moment is longer if all
    failures so far only follow from the loss of another rank, because that rank has yet to end.
    """
    links: dict[Any, int] = {link: peer - 1 for peer, link in meeting.links.control.items()}
    said: dict[int, Any] = {}  # by rank: the rank's last message, or None
    why: dict[int, BaseException | None] = {}  # by rank: the exception of its future, or None
    endings: dict[int, Ending] = {}
    while len(said) < len(futures):
        first = first_failure(endings.values())
        if first is not None:
            limit_s = CULPRIT_S if first.secondary else LAST_WORDS_S
            if time.monotonic() > first.at + where_crowded(limit_s, len(futures)):
                break
        for link in wait(list(links), LOOK_S):  # the link of a worker that has died
            rank = links.pop(link)
            endings.setdefault(rank, Ending(rank, 1, time.monotonic()))
        for rank, future in enumerate(futures):
            if rank not in said and future.done():
                data, why[rank] = outcome_of(partial(future.result, FETCH_S))
                said[rank] = message = None if data is None else message_in(data)
                report = message.report if isinstance(message, Failed) else None
                at = endings[rank].at if rank in endings else time.monotonic()
                endings[rank] = Ending(rank, exit_code_in(message), at, report)
    for rank in endings.keys() - said.keys():
        futures[rank].cancel()  # else Dask would run the task again, on a new worker
    first = first_failure(endings.values())
    if first is None:
        return {rank: said[rank] for rank in range(len(futures))}
    if isinstance(failed := said.get(first.rank), Failed):
        raise failed.error(first.rank, ranks_alike(endings.values(), first))
    raise WorkerError(first.rank, None) from why.get(first.rank)


def _release(meeting: Coordinator, futures: list[Any]) -> None:
    """Interrupt the ranks that still run, and wait for them to end, but not for ever."""
    links = list(meeting.links.control.values())
    for link in links:
        _hang_up(link)
    meeting.links.close()
    until = time.monotonic() + (SAY_S if len(links) == len(futures) else 0.0)
    while not all(future.done() for future in futures) and time.monotonic() < until:
        time.sleep(LOOK_S)
    for future in futures:
        if not future.done():
            future.cancel()  # the task has not begun, or does not end


def _hang_up(sock: socket.socket) -> None:
    """Shut a socket down, even if a forked worker has a copy of its descriptor."""
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


def run_rank(config: TcpConfig, job: Job, fn: Callable[..., Any], args: tuple[Any, ...]) -> bytes:
    """Act as one rank of a job, in a worker that has other tasks later; return the last message.

    ``config`` is the configuration of the rendezvous with the launcher.
    """
    if is_rank():
        raise RuntimeError("this worker is a rank of another launch; ranks need a process each")
    with contextlib.ExitStack() as held:
        with meet(config, listens=True) as meeting:
            link = meeting.links.control[0]
            own = link.getsockname()[0]
            port = held.enter_context(ReservedPort(own)).port
            place = f"{own} {port}".encode().ljust(PLACE_BYTES)
            places = meeting.exchange(place, last=True)
        host, its_port = places[PLACE_BYTES : 2 * PLACE_BYTES].decode().split()
        job = replace(job, rendezvous=Rendezvous(host, int(its_port), host))
        told = os.environ | rendezvous_variables(job, config.rank - 1)
        told["COBRE_TCP_CONNECT_TIMEOUT_MS"] = CONNECT_TIMEOUT_MS
        try:
            with (
                _interrupted_by(link),
                as_rank(lambda payload: None),  # progress is reported to nobody
                TcpBackend(TcpConfig.from_env(told)) as comm,
            ):
                start = time.perf_counter()
                value = fn(comm, *args)
                return value_message(comm, value, time.perf_counter() - start)
        except BaseException as error:
            return pickle.dumps(Failed.of(error))


@contextlib.contextmanager
def _interrupted_by(link: socket.socket) -> Iterator[None]:
    """Raise KeyboardInterrupt in this thread when the launcher ends the link.

    The link stays open until the launcher ends it, even after the block: if this process closed the
    link, the launcher would believe that the process has died.
    """
    lock, task, runs = threading.Lock(), threading.get_ident(), True

    def watch() -> None:
        with link, contextlib.suppress(OSError):
            link.recv(1)  # the launcher sends nothing
        with lock:
            if runs:
                _interrupt(task)

    link.setblocking(True)
    threading.Thread(target=watch, daemon=True, name="cobre-launcher").start()
    try:
        yield
    finally:
        with lock:
            runs = False


def _interrupt(task: int) -> None:
    if task == threading.main_thread().ident and callable(signal.getsignal(signal.SIGINT)):
        signal.pthread_kill(task, signal.SIGINT)  # interrupts a sleep too
    else:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(task), ctypes.py_object(KeyboardInterrupt)
        )


def submitters(executor: Any, size: int) -> tuple[Sequence[Callable[..., Any]], str]:
    """Return a submit function for each rank, and the address at which workers reach this process.

    ``TypeError`` is raised for an object that is no executor, and for workers that are threads;
    ``ValueError`` for fewer workers than ranks.
    """
    package = type(executor).__module__.partition(".")[0]
    if package == "distributed":  # sorted, so that ranks of one machine are neighbours
        places = sorted(executor.nthreads())
        workers, of_threads = len(places), any(place.startswith("inproc:") for place in places)
    elif isinstance(executor, concurrent.futures.Executor):
        workers = getattr(executor, "_max_workers", size)
        of_threads = isinstance(executor, concurrent.futures.ThreadPoolExecutor)
    else:
        raise TypeError(
            "executor must be a concurrent.futures.Executor or a dask.distributed.Client, got "
            f"{executor!r}"
        )
    if of_threads:
        raise TypeError(
            "the workers of this executor are threads of one process, and a rank needs a process "
            "of its own; use ProcessPoolExecutor, or dask.distributed.LocalCluster(processes=True)"
        )
    if workers < size:
        raise ValueError(
            f"the executor has {workers} workers, and {size} ranks need one each; "
            "start more workers, or pass a smaller size"
        )
    if package in _LOCAL:
        return [executor.submit] * size, LOOPBACK
    if package != "distributed":
        return [executor.submit] * size, _own_address(socket.gethostname())
    alone = {"allow_other_workers": False, "pure": False, "retries": 0}
    submits = [partial(executor.submit, workers=[place], **alone) for place in places[:size]]
    return submits, _own_address(urlsplit(places[0]).hostname or LOOPBACK)


def _own_address(far: str) -> str:
    """Return the address of this machine that the host ``far`` can reach; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((far, 9))
        except OSError:
            return LOOPBACK
        return str(probe.getsockname()[0])
