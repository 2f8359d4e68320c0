"""The attempts of ``launch``: workers are started, and all again after one of them has failed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from cobre_comm.common.streams import open_standard
from cobre_comm.common.trace_folder import trace_folder
from cobre_comm.errors import WorkerError
from cobre_comm.launching.interrupt import forwarded
from cobre_comm.launching.order import Order
from cobre_comm.launching.workers import Workers
from cobre_comm.processes.job import Job
from cobre_comm.processes.port import with_rendezvous
from cobre_comm.processes.restarts import Restarts, given_up

_logger = logging.getLogger("cobre_comm")


def call_in_attempts(
    job: Job,
    order: Order,
    on_progress: Callable[[int, Any], None] | None,
    restarts: Restarts,
) -> Workers:
    """Return the workers of the attempt that succeeded; all have ended.

    Raises
    ------
    WorkerError
        For the first failure of the last attempt.
    """
    open_standard()
    trace_folder()  # before on_progress can change the directory
    while True:
        with with_rendezvous(job) as here:
            workers = Workers(here, order, on_progress)
            try:
                _call(workers)
                return workers
            except WorkerError as error:
                if error is not workers.failure or not restarts.most:
                    raise
                outcome = workers.outcome
                why = restarts.why_not(outcome)
                if why:
                    _logger.warning("%s", given_up(why))
                    raise
                size = restarts.size(job.size, outcome.killed)
                said = str(error).partition("\n")[0]
                _logger.warning("%s; %s", said, restarts.plan(size))
        time.sleep(restarts.pause_s)
        job = job.again(size)


def _call(workers: Workers) -> None:
    """Start the workers of one attempt, and wait for their values; no worker is left."""
    with workers:
        try:
            with forwarded(workers.ask_to_stop):
                workers.start()
                workers.wait()
        except KeyboardInterrupt:
            workers.interrupt()
            raise
