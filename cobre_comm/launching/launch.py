"""``launch``: call a function on every rank, from a Python program."""

from __future__ import annotations

import functools
import operator
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, TypeVarTuple, overload

from cobre_comm import old_names
from cobre_comm.config import BackendKind
from cobre_comm.errors import WorkerError
from cobre_comm.launching import reporting
from cobre_comm.launching.interrupt import interrupted
from cobre_comm.launching.order import Order, pack
from cobre_comm.launching.refusals import check_call, check_importable, check_not_nested
from cobre_comm.launching.reporting import OnProgress
from cobre_comm.processes.interpreter import interpreter_command
from cobre_comm.processes.job import Job, check_nodes, check_size, check_timeout, choose_backend
from cobre_comm.processes.restarts import Restarts, check_restarts
from cobre_comm.reports.report_pipe import exit_code_of
from cobre_comm.reports.tracebacks import tells_callers

if TYPE_CHECKING:
    from cobre_comm.contract.communicator import Communicator
    from cobre_comm.launching.replies import Done

Value = TypeVar("Value")
Args = TypeVarTuple("Args")

__all__ = ["LaunchResult", "WorkerInfo", "launch", "report_progress"]


@dataclass(frozen=True)
class WorkerInfo:
    """One worker of a finished :func:`launch`.

    Attributes
    ----------
    rank : int
        The rank of the worker.
    pid : int
        The process id of the worker.
    backend : str
        The backend of the worker's communicator.
    wall_time_s : float
        The seconds that the function took on the worker.

    Examples
    --------
    >>> from cobre_comm import launch
    >>> worker = launch(lambda comm: None, 1).workers[0]
    >>> worker.rank, worker.backend
    (0, 'local')
    """

    rank: int
    pid: int
    backend: str
    wall_time_s: float


@dataclass(frozen=True)
class LaunchResult(Generic[Value]):
    """The result of :func:`launch`.

    Attributes
    ----------
    values : list
        The values that the function returned, by rank; None for a rank that was lost.
    workers : list of WorkerInfo
        The workers that have returned, by rank.
    lost : list of WorkerError
        The failures of the ranks that were lost while the others continued, by rank.

    Examples
    --------
    >>> import operator
    >>> from cobre_comm import launch
    >>> result = launch(operator.methodcaller("sum", 1.5), 3)
    >>> result.values
    [4.5, 4.5, 4.5]
    >>> [worker.backend for worker in result.workers]
    ['shm', 'shm', 'shm']
    """

    values: list[Value]
    workers: list[WorkerInfo]
    lost: list[WorkerError] = field(default_factory=list)

    @property
    def value(self) -> Value:
        """The value that the function returned on rank 0, or on the first rank that was not lost.

        Examples
        --------
        >>> from cobre_comm import launch
        >>> launch(lambda comm: comm.size, 1).value
        1
        """
        return self.values[self.workers[0].rank]

    def _refuse(self, *_: object) -> NoReturn:
        """Raise if the result is used as if it were the list of values, or a single value."""
        raise TypeError(
            "launch returns a LaunchResult: result.values is the list of values by rank, and "
            "result.value that of rank 0"
        )

    __getitem__ = __iter__ = __len__ = _refuse

    def __bool__(self) -> bool:
        return True  # without this method Python asks for the length


def report_progress(payload: Any) -> None:
    """Report how far a rank is: to the ``on_progress`` of :func:`launch`, and to ``cobre-comm``.

    If the payload is a mapping, each number in it that has a name is noted too, however the rank
    was started. ``cobre-comm status`` shows the latest numbers, and ``cobre-comm status --serve``
    draws them over time. Any other payload goes to ``on_progress`` alone.

    One process may run several launches at the same time, each of one rank. Each launch gets the
    reports of its own function, and of threads that run in a copy of the function's context. Any
    other thread reports to the launch that began before the thread did.

    Parameters
    ----------
    payload : object
        The object that ``on_progress`` gets. It must be picklable, unless the only rank runs in the
        calling process. ``cobre-comm`` shows real numbers that have a printable name, which is cut
        after 48 bytes. It keeps the first 8 names of a process, with the last 512 reports.

    Raises
    ------
    TypeError, AttributeError, pickle.PicklingError
        If the payload cannot be pickled. With one rank, whatever ``on_progress`` raises.
    RuntimeError
        In a thread without a copy of a function's context, if several launches began before the
        thread did.

    Examples
    --------
    >>> from cobre_comm import launch, report_progress
    >>> def train(comm):
    ...     for lower_bound in (70.5, 71.25):
    ...         report_progress({"lower bound": lower_bound})
    >>> launch(train, 1, on_progress=print).value
    0 {'lower bound': 70.5}
    0 {'lower bound': 71.25}
    """
    from cobre_comm.journal.progress import note

    note(payload)
    reporting.report(payload)


# fmt: off
@overload
def launch(
    fn: Callable[[Communicator, *Args], Value], size: int, *, backend: str | BackendKind = ...,
    args: tuple[*Args] = ..., timeout: float | None = ..., on_progress: OnProgress | None = ...,
    executor: Any = ..., max_restarts: int = ..., min_ranks: int | None = ..., survive: bool = ...,
) -> LaunchResult[Value]: ...
@overload  # the types of kwargs cannot be compared with those of the function
def launch(
    fn: Callable[..., Value], size: int, *, backend: str | BackendKind = ...,
    args: tuple[Any, ...] = ..., kwargs: Mapping[str, Any],
    timeout: float | None = ..., on_progress: OnProgress | None = ...,
    executor: Any = ..., max_restarts: int = ..., min_ranks: int | None = ..., survive: bool = ...,
) -> LaunchResult[Value]: ...
# fmt: on
@tells_callers
@old_names.also_by_position(
    "backend", "args", "timeout", "on_progress", "executor", "max_restarts", "min_ranks", "survive"
)
def launch(
    fn: Callable[..., Value],
    size: int,
    *,
    backend: str | BackendKind = "auto",
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    on_progress: OnProgress | None = None,
    executor: Any = None,
    max_restarts: int = 0,
    min_ranks: int | None = None,
    survive: bool = False,
) -> LaunchResult[Value]:
    """Call ``fn(comm, *args, **kwargs)`` on ranks of this machine, or of an executor's workers.

    Parameters
    ----------
    fn : callable
        A function that a new process can import, because a module or script defines it. If
        cloudpickle is installed, it may also be a function of a notebook, a lambda, or a function
        within a function. In a script, call ``launch`` under ``if __name__ == "__main__":``,
        because the workers import the script.
    size : int
        Number of ranks. One rank runs in this process, several in processes of their own.
    backend : str or BackendKind
        For one rank, ``auto`` takes ``local``. For several ranks it takes ``shm``, or ``tcp`` if
        ``COBRE_TCP_COORDINATOR`` is set. With an executor it takes ``tcp``, and no other backend is
        allowed.
    args : tuple
        Further arguments; they and the values that ``fn`` returns are pickled.
    kwargs : mapping of str to object, optional
        Arguments that ``fn`` gets by name; pickled too.
    timeout : float, optional
        Longest wait for a live rank in one collective, in seconds; 0 means no limit. The job as a
        whole may take longer.
    on_progress : callable, optional
        Called in this process with (rank, payload) for each :func:`report_progress`. Reports of one
        rank arrive in their order. If the callable raises, the job ends and the exception
        propagates. ``on_progress`` is refused with an executor, which brings nothing back before a
        task has ended.
    executor : dask.distributed.Client or concurrent.futures.Executor, optional
        Where the ranks run: one in each of ``size`` workers, on one machine or several. Workers
        must be processes, and free at the same time. The ranks meet over ``tcp``, and share memory
        where they can. Afterwards the workers take other tasks. The executor sends ``fn`` in its
        own way.
    max_restarts : int
        How often all ranks are started again after one of them has failed, so that ``fn``
        continues from its checkpoint. ``COBRE_RESTART`` is 0 in the first attempt, then 1, 2 ...
        Each restart is a WARNING of the logger ``cobre_comm``. A rank in this process is not
        started again.
    min_ranks : int, optional
        The fewest ranks with which a restart may begin; needs ``max_restarts``. If this number is
        given, a restart leaves out ranks that SIGKILL has ended, because the kernel sends that
        signal if memory is short. By default all ranks are started again.
    survive : bool
        Whether the other ranks continue when a rank is lost. A lost rank has ended by a signal, or
        has raised an exception that does not follow from another loss. The other ranks get
        CollectiveFailed, and call ``comm.shrink()``. Each loss is a WARNING of the logger
        ``cobre_comm``. An attempt fails if no rank is left, or if a survivor fails because of a
        loss.

    Returns
    -------
    LaunchResult
        ``values`` has what ``fn`` returned, by rank. ``value`` is the first value. ``workers`` has
        one :class:`WorkerInfo` for each rank that returned.

    Raises
    ------
    WorkerError
        For the first rank that failed, in the last attempt; the others are ended. A rank has
        succeeded if ``fn`` has returned: ``sys.exit(0)`` is a failure with exit code 0.
    ValueError, TypeError, RuntimeError, InvalidBackend, BackendNotAvailable
        For arguments or a situation that cannot work, before anything is started; with an executor
        also if not every rank gets its own worker process.
    KeyboardInterrupt
        After Ctrl-C, when no worker is left. A script that does not catch it ends with one line.

    Examples
    --------
    >>> import operator
    >>> from cobre_comm import launch
    >>> launch(operator.attrgetter("rank"), 1).values
    [0]
    """
    if executor is not None and backend not in ("auto", "tcp", BackendKind.AUTO, BackendKind.TCP):
        raise ValueError(f"ranks in the workers of an executor meet over tcp, not {backend!r}")
    given = (max_restarts, "max_restarts"), (survive, "survive"), (on_progress, "on_progress")
    refused = [name for value, name in given if executor is not None and value]
    if refused:
        raise ValueError(f"{refused[0]} is for ranks of this machine, not for those of an executor")
    job = _check(size, "tcp" if executor is not None else backend, timeout, survive)
    restarts = check_restarts(max_restarts, min_ranks, job.size)
    if not isinstance(args, tuple):
        raise TypeError(f"args must be a tuple, got {type(args).__name__}; write args=(x,)")
    if not isinstance(kwargs, Mapping | None):
        raise TypeError(
            f"kwargs must be a mapping, got {type(kwargs).__name__}; write kwargs={{'name': x}}"
        )
    if not callable(fn):
        raise TypeError(f"fn must be callable, got {fn!r}")
    check_call(fn, args, kwargs or {})
    check_not_nested()
    if kwargs:
        fn = functools.partial(fn, **kwargs)
    if executor is not None:
        return _call_on(executor, job, fn, args)
    if job.backend == "local":
        return _call_here(fn, args, on_progress)
    check_importable(fn)
    interpreter_command()  # raises if this program has no interpreter
    order = pack(fn, args, wants_progress=on_progress is not None)
    return _call_in_workers(job, order, on_progress, restarts)


def _check(size: int, backend: str | BackendKind, timeout: float | None, survive: bool) -> Job:
    try:
        size = operator.index(None if isinstance(size, bool) else size)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"size must be an integer, got {size!r}") from None
    check_size(size)
    check_timeout(timeout)
    name = backend.value if isinstance(backend, BackendKind) else backend
    if not isinstance(name, str):
        raise TypeError(f"backend must be a name or a BackendKind, got {backend!r}")
    prefer_tcp = bool(os.environ.get("COBRE_TCP_COORDINATOR"))
    chosen = choose_backend(name, size, prefer_tcp=prefer_tcp)
    if chosen == BackendKind.MPI.value:
        raise ValueError(
            "launch cannot start MPI ranks: mpiexec does; start the whole program by "
            f"`cobre-comm run -n {size} --backend mpi script.py` and let every rank call "
            "create_communicator()"
        )
    job = Job(size, chosen, timeout, survive=survive)
    check_nodes(job, os.environ)
    return job


def _call_here(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    on_progress: OnProgress | None,
) -> LaunchResult[Any]:
    """Call the function on one rank in this process; errors are the same as in a worker."""
    from cobre_comm.factory import create_communicator

    raised: list[BaseException] = []  # exceptions of on_progress

    def reporter(payload: Any) -> None:
        try:
            if on_progress is not None:
                on_progress(0, payload)
        except BaseException as error:
            raised.append(error)
            raise

    try:
        with create_communicator(BackendKind.LOCAL) as comm, reporting.as_call(reporter):
            start = time.perf_counter()
            value = fn(comm, *args)
            wall_time_s = time.perf_counter() - start
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if any(error is each for each in raised):
            raise
        raise WorkerError(0, exit_code_of(error), error) from error
    return LaunchResult([value], [WorkerInfo(0, os.getpid(), "local", wall_time_s)])


def _call_on(
    executor: Any, job: Job, fn: Callable[..., Any], args: tuple[Any, ...]
) -> LaunchResult[Any]:
    from cobre_comm.launching.executor import call_on_executor

    try:
        done = call_on_executor(executor, job, fn, args)
    except KeyboardInterrupt:
        raise interrupted(job.size) from None
    return _result(job.size, done)


def _call_in_workers(
    job: Job, order: Order, on_progress: OnProgress | None, restarts: Restarts
) -> LaunchResult[Any]:
    from cobre_kernels.machine.made import prepare

    from cobre_comm.launching.launched import call_in_attempts

    prepare()
    try:
        attempt = call_in_attempts(job, order, on_progress, restarts)
    except KeyboardInterrupt:
        raise interrupted(job.size) from None
    return _result(len(attempt.ranks), attempt.done, attempt.lost)


def _result(
    size: int,
    done: Mapping[int, Done],
    lost: Mapping[int, WorkerError] = MappingProxyType({}),
) -> LaunchResult[Any]:
    """Return the result of the workers, from each rank's last message or loss."""
    infos = [
        WorkerInfo(rank, said.pid, said.backend, said.wall_time_s) for rank, said in done.items()
    ]
    values = [done[rank].value if rank in done else None for rank in range(size)]
    return LaunchResult(values, infos, [lost[rank] for rank in sorted(lost)])
