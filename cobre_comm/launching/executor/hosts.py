"""The differences between executors: number and place of the workers, and the way to submit."""

from __future__ import annotations

import concurrent.futures
import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"
# Their workers are processes of this machine.
_LOCAL = ("concurrent", "loky", "joblib")

Submit = Callable[..., Any]


def submitters(executor: Any, size: int) -> tuple[list[Submit], str]:
    """Return a submit function for each rank, and the address at which workers reach this process.

    ``TypeError`` is raised for no executor, or one of threads; ``ValueError`` for too few workers.
    """
    if type(executor).__module__.partition(".")[0] == "distributed":
        return _of_dask(executor, size)
    if isinstance(executor, concurrent.futures.ThreadPoolExecutor):
        raise TypeError(_THREADS)
    if not isinstance(executor, concurrent.futures.Executor):
        raise TypeError(
            "executor must be a concurrent.futures.Executor or a dask.distributed.Client, got "
            f"{executor!r}"
        )
    _check_count(getattr(executor, "_max_workers", size), size)
    here = type(executor).__module__.partition(".")[0] in _LOCAL
    return [executor.submit] * size, LOOPBACK if here else _own_address(socket.gethostname())


_THREADS = (
    "the workers of this executor are threads of one process, and a rank needs a process of its "
    "own; use ProcessPoolExecutor, or dask.distributed.LocalCluster(processes=True)"
)


def _check_count(workers: int, size: int) -> None:
    if workers < size:
        raise ValueError(
            f"the executor has {workers} workers, and {size} ranks need one each; "
            "start more workers, or pass a smaller size"
        )


def _of_dask(client: Any, size: int) -> tuple[list[Submit], str]:
    workers = sorted(client.nthreads())  # by machine: ranks that share memory are neighbours
    if any(address.startswith("inproc:") for address in workers):
        raise TypeError(_THREADS)
    _check_count(len(workers), size)

    def submitter(address: str) -> Submit:
        def submit(*call: Any) -> Any:
            return client.submit(
                *call, workers=[address], allow_other_workers=False, pure=False, retries=0
            )

        return submit

    far = urlsplit(workers[0]).hostname or LOOPBACK
    return [submitter(address) for address in workers[:size]], _own_address(far)


def _own_address(far: str) -> str:
    """Return the address of this machine on the way to another one, without sending anything."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((far, 9))
        except OSError:
            return LOOPBACK
        return str(probe.getsockname()[0])
