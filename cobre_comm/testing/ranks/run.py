"""Runs a function once, on real ranks: new processes, which are killed at a deadline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from cobre_comm.testing.ranks.bodies import NO_COMMUNICATOR
from cobre_comm.testing.ranks.members import pack_order
from cobre_comm.testing.ranks.outcome import Outcome, exceptions_of, values_of
from cobre_comm.testing.ranks.start_job import start_job
from cobre_comm.testing.ranks.surroundings import rank_environment

DEFAULT_TIMEOUT_S = 60.0


def run_ranks_outcomes(
    backend: str,
    size: int,
    body: Callable[..., Any],
    *args: Any,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    env: Mapping[str, str] | Sequence[Mapping[str, str]] = MappingProxyType({}),
    connect: bool = True,
) -> list[Outcome]:
    """Run ``body(comm, *args)`` on new ranks and return the outcome of each.

    When a rank ends, the other ranks continue, also over ``mpi``.

    Parameters
    ----------
    backend : str
        Name of the backend. ``local`` has one rank; mpiexec starts the ranks of ``mpi``.
        ``mpi-openmpi`` and ``mpi-mpich`` choose the MPI, and ``mpi-mpich:0,0,1,1`` makes ranks
        behave as on several nodes.
    size : int
        Number of ranks.
    body : callable
        An importable function; ``body(comm, *args)`` is called on each rank.
    *args : object
        Picklable.
    timeout_s : float
        Deadline of all ranks together, start-up included.
    env : mapping or sequence of mapping
        Further environment variables of every rank, or a mapping for each rank in rank order.
    connect : bool
        Whether to make the communicator; otherwise ``comm`` is None and the environment is set.

    Returns
    -------
    list of Outcome
        In rank order.

    Examples
    --------
    >>> import operator
    >>> from cobre_comm.testing import run_ranks_outcomes
    >>> run_ranks_outcomes("local", 1, operator.methodcaller("sum", "x"))[0].ok
    False
    """
    environments = rank_environment(backend, size)
    common, own = (env, [env] * size) if isinstance(env, Mapping) else ({}, env)
    for environment, more in zip(environments, own, strict=True):
        environment.update(more)
    order = pack_order("job" if connect else NO_COMMUNICATOR, False, {}, body, args)
    with start_job(backend, common, environments) as job:
        return job.run([order] * size, timeout_s)


def run_ranks(
    backend: str,
    size: int,
    body: Callable[..., Any],
    *args: Any,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    env: Mapping[str, str] | Sequence[Mapping[str, str]] = MappingProxyType({}),
    expect: type[BaseException] | tuple[type[BaseException], ...] | None = None,
) -> list[Any]:
    """Run ``body(comm, *args)`` on new ranks and return their values in rank order.

    The arguments are those of :func:`run_ranks_outcomes`. With ``expect``, every rank should raise
    an exception of that type, and the exceptions are returned. If a rank does something else,
    RanksFailed is raised, with the traceback of each failed rank; the first exception is its cause.

    Examples
    --------
    >>> import operator
    >>> from cobre_comm.testing import run_ranks
    >>> run_ranks("local", 1, operator.methodcaller("sum", 1.5))
    [1.5]
    """
    outcomes = run_ranks_outcomes(backend, size, body, *args, timeout_s=timeout_s, env=env)
    return values_of(outcomes) if expect is None else list(exceptions_of(outcomes, expect))
