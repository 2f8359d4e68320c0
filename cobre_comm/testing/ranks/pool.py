"""Ranks that stay and run many bodies, because it takes a second to start a process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from cobre_comm.contract.closing import Closing
from cobre_comm.testing.ranks.members import RankJob, pack_order
from cobre_comm.testing.ranks.outcome import Outcome, exceptions_of, values_of
from cobre_comm.testing.ranks.run import DEFAULT_TIMEOUT_S
from cobre_comm.testing.ranks.start_job import start_job
from cobre_comm.testing.ranks.surroundings import rank_environment

# About once in some thousand starts, mpiexec of Open MPI 5 prints this and starts no rank.
NOT_STARTED = "The PMIx server's listener thread failed to start"


class RankPool(Closing):
    """Processes of one job that run body after body, in order, on one communicator.

    A body that fails on a shared communicator, a process that ends, or a missed deadline restarts
    the processes before the next body.

    Parameters
    ----------
    backend : str
        Name of the backend, as :func:`run_ranks_outcomes` takes it.
    size : int
        Number of ranks.
    env : mapping, optional
        Further environment variables of every rank.

    Examples
    --------
    >>> import operator
    >>> from cobre_comm.testing import RankPool
    >>> with RankPool("shm", 2) as pool:
    ...     pool.run(operator.attrgetter("rank"))
    ...     pool.run(operator.methodcaller("sum", 3))
    ...     len(pool.pids)
    [0, 1]
    [6, 6]
    2
    """

    def __init__(self, backend: str, size: int, *, env: Mapping[str, str] | None = None) -> None:
        self.backend = backend
        self.size = size
        self._env = dict(env or {})
        self._job: RankJob | None = None
        self._keys: dict[str, list[dict[str, str]]] = {}
        self._fresh = itertools.count()

    def run(
        self,
        body: Callable[..., Any],
        *args: Any,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        env: Mapping[str, str] | None = None,
        fresh: bool = False,
        expect: type[BaseException] | tuple[type[BaseException], ...] | None = None,
    ) -> list[Any]:
        """Run ``body(comm, *args)`` on every rank; return the values in rank order.

        With ``expect``, every rank should raise an exception of that type, and the exceptions are
        returned. If a rank does something else, RanksFailed is raised, with the traceback of each
        failed rank.

        Examples
        --------
        >>> import operator
        >>> from cobre_comm.testing import RankPool
        >>> with RankPool("local", 1) as pool:
        ...     pool.run(operator.attrgetter("size"))
        [1]
        """
        outcomes = self.run_outcomes(body, *args, timeout_s=timeout_s, env=env, fresh=fresh)
        return values_of(outcomes) if expect is None else list(exceptions_of(outcomes, expect))

    def run_outcomes(
        self,
        body: Callable[..., Any],
        *args: Any,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        env: Mapping[str, str] | None = None,
        fresh: bool = False,
    ) -> list[Outcome]:
        """Run ``body(comm, *args)`` on every rank; return the outcome of each.

        Parameters
        ----------
        body : callable
            An importable function.
        *args : object
            Picklable.
        timeout_s : float
            Deadline of this body on all ranks.
        env : mapping, optional
            Environment variables for the communicator; bodies with the same variables share a
            communicator.
        fresh : bool
            Make a communicator for this body alone and close it afterwards.

        Examples
        --------
        >>> import operator
        >>> from cobre_comm.testing import RankPool
        >>> with RankPool("local", 1) as pool:
        ...     pool.run_outcomes(operator.attrgetter("gone"))[0].exception
        AttributeError("'LocalBackend' object has no attribute 'gone'")
        """
        outcomes = self._run_once(body, args, timeout_s, env or {}, fresh)
        if any(outcome.ended and NOT_STARTED in outcome.output for outcome in outcomes):
            outcomes = self._run_once(body, args, timeout_s, env or {}, fresh)
        return outcomes

    def _run_once(
        self,
        body: Callable[..., Any],
        args: tuple[Any, ...],
        timeout_s: float,
        env: Mapping[str, str],
        fresh: bool,
    ) -> list[Outcome]:
        job = self._started()
        key, environments = self._environments(env, fresh)
        orders = [
            pack_order(key, not fresh, environment, body, args) for environment in environments
        ]
        try:
            outcomes = job.run(orders, timeout_s)
        except BaseException:  # Ctrl-C, or a test's time limit, while the ranks are busy
            job.kill()
            self.close()
            raise
        gone = any(o.timed_out or o.ended for o in outcomes)
        if gone or (not fresh and not all(o.ok for o in outcomes)):
            self.close()
        return outcomes

    def _environments(
        self, env: Mapping[str, str], fresh: bool
    ) -> tuple[str, list[dict[str, str]]]:
        key = f"fresh {next(self._fresh)}" if fresh else f"shared {sorted(env.items())}"
        if key not in self._keys:
            environments = rank_environment(self.backend, self.size)
            self._keys[key] = [{**environment, **env} for environment in environments]
        return key, self._keys.pop(key) if fresh else self._keys[key]

    def _started(self) -> RankJob:
        if self._job is None:
            self._keys.clear()
            self._job = self._start()
        return self._job

    def _start(self) -> RankJob:
        """Start the processes."""
        return start_job(self.backend, self._env, [{} for _ in range(self.size)])

    @property
    def pids(self) -> list[int]:
        """Process ids in rank order, after a body has run; empty while there are no processes.

        Examples
        --------
        >>> from cobre_comm.testing import RankPool
        >>> RankPool("shm", 2).pids
        []
        """
        return self._job.pids if self._job is not None else []

    def close(self) -> None:
        """End the processes; the next body starts new ones.

        Examples
        --------
        >>> from cobre_comm.testing import RankPool
        >>> pool = RankPool("shm", 2)
        >>> pool.close()
        """
        job, self._job = self._job, None
        if job is not None:
            job.close()
