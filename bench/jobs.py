"""Jobs of ranks: the first figure of a job starts the job, which takes all selected measurements.

Jobs do not overlap, because a rank of MPI that waits keeps a core busy.
"""

from __future__ import annotations

import faulthandler
import socket
from collections.abc import Callable, Iterable

import pytest

from bench.hosts import on_hosts, take_there
from bench.peers import library_of, require
from bench.plan import BACKENDS, COMPARED, GLOO, IN_REGION, Figure, Job, Options
from bench.ranks.job import take_all
from bench.recording import ratios
from cobre_comm.errors import InitializationFailed
from cobre_comm.testing import RanksFailed, run_ranks_outcomes


class Jobs:
    """The jobs of a session's figures, and their results; ``say`` gets a line when a job starts."""

    def __init__(
        self, figures: Iterable[Figure], options: Options, say: Callable[[str], None]
    ) -> None:
        self._plans: dict[Job, dict] = {}
        for figure in figures:
            self._plans.setdefault(figure.job, {})[figure.measurement] = None
        self._results: dict[Job, dict | Exception] = {}
        self._options, self._say = options, say

    def told(self, figure: Figure) -> dict | None:
        """Return all arguments of ``recording.record``; None if the side is not installed."""
        job, result = figure.job, self._result(figure.job)
        taken = result["measurements"][list(self._plans[job]).index(figure.measurement)]
        if taken["error"]:
            pytest.fail(f"{figure.id}: {taken['error']}", pytrace=False)
        samples = taken["samples_s"]
        if figure.side not in samples:
            return None
        told = {
            "samples_s": samples[figure.side],
            "label": figure.label,
            "operation": figure.operation,
            "ranks": job.ranks,
            "beside": job.beside,
            "side": job.side_name(figure.side),
            "backend": {IN_REGION: "shm"}.get(
                figure.side, figure.side if figure.side in BACKENDS else None
            ),
            "setting": figure.where,
            "bytes": figure.sent,
            "moved_bytes": figure.received or None,
            "calls": taken.get("calls", {}).get(figure.side),
            **taken.get("told", {}).get(figure.side, {}),
        }
        if figure.side in COMPARED:
            others = {name: s for name, s in samples.items() if name not in COMPARED}
            told["ratio_to"] = {
                job.side_name(name): ratios(samples[figure.side], s) for name, s in others.items()
            }
        return told

    def _result(self, job: Job) -> dict:
        if job not in self._results:
            faulthandler.cancel_dump_traceback_later()  # a job may take longer than a test may
            measurements = list(self._plans[job])
            self._say(f"{job}: {len(measurements)} measurements")
            try:
                self._results[job] = take_measurements(job, measurements, self._options)
            except (RanksFailed, InitializationFailed) as error:
                self._results[job] = error
        result = self._results[job]
        if isinstance(result, InitializationFailed):
            pytest.skip(str(result))
        if isinstance(result, Exception):
            pytest.fail(str(result), pytrace=False)
        return result


def take_measurements(job: Job, measurements: list, options: Options) -> dict:
    """Start the ranks of a job, which take its measurements."""
    if job.library != GLOO:
        require(job.library)
    args = job.library, job.program, measurements, options
    if job.cable:
        with on_hosts(job) as (hosts, environment):
            return run_job(job, take_there, hosts, *args, **environment)
    return run_job(job, take_all, *args)


def run_job(job: Job, body: Callable, *args: object, **environment: str) -> dict:
    """Run ``body(None, *args)`` on the ranks of a job; return the value of rank 0.

    ``body`` is importable, and ``environment`` has further variables of all ranks.
    """
    env: dict | list[dict] = job.environment | environment
    backend = f"mpi-{library_of(job.library)}"
    if job.library == GLOO:
        backend = "shm"  # no launcher starts these processes, which meet by gloo's variables
        env |= group_environment(job.ranks)
        env = [{**env, "RANK": str(rank)} for rank in range(job.ranks)]
    elif job.nodes and not job.cable:
        backend += f":{job.nodes}"
    outcomes = run_ranks_outcomes(
        backend, job.ranks, body, *args, timeout_s=job.within_s, env=env, connect=False
    )
    if not all(outcome.ok for outcome in outcomes):
        raise RanksFailed(outcomes, f"{job} failed")
    return outcomes[0].value


def group_environment(size: int) -> dict[str, str]:
    """Return the environment in which the ranks of a new group meet on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(size),
        "GLOO_SOCKET_IFNAME": "lo",
    }
