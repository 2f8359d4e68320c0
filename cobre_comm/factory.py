"""Chooses a backend by what the caller asks for, by the environment, and by what is available."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from cobre_comm.backends import BY_NAME, SPECS
from cobre_comm.backends.announced import announced
from cobre_comm.backends.tcp.foreign import foreign_job
from cobre_comm.config import BackendKind, Config
from cobre_comm.errors import (
    BackendError,
    BackendNotAvailable,
    InitializationFailed,
    InvalidBackend,
)
from cobre_comm.reports import report_pipe, seat
from cobre_comm.reports.graceful import VARIABLE, graceful_signals
from cobre_comm.reports.tracebacks import tells_callers
from cobre_comm.system.log import logger

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from cobre_comm.contract.communicator import Communicator


ENTRY_POINT_GROUP = "cobre_comm.backends"


def available_backends() -> list[str]:
    """Return the names of the backends that can be used here.

    Returns
    -------
    list of str
        First the built-in backends, then those that other distributions add through the
        entry-point group ``cobre_comm.backends``.

    Examples
    --------
    >>> from cobre_comm import available_backends
    >>> "local" in available_backends()
    True
    """
    found = [spec.name for spec in SPECS if spec.is_available()]
    return found + [name for name in _plugins() if name not in found]


def _plugins() -> dict[str, EntryPoint]:
    import importlib.metadata  # slow to import, and not needed by the backends of this package

    group = importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)
    return {entry.name: entry for entry in group}


@tells_callers
def create_communicator(
    kind: BackendKind | Config | str | None = None,
    *,
    graceful: str | Iterable[int | str] | None = None,
) -> Communicator:
    """Create the communicator of this process; collective if there are several ranks.

    Parameters
    ----------
    kind : BackendKind, configuration, str or None
        The backend, or a configuration that implies it: a ``ShmConfig``, for example. None reads
        ``COBRE_COMM_BACKEND`` (default ``auto``). The reference lists all variables of the
        environment.
    graceful : str or iterable of signals, optional
        Signals, such as ``"SIGTERM,SIGUSR1"`` or ``[signal.SIGTERM]``. Until the communicator is
        closed, each of these signals asks for a stop (:meth:`Communicator.stop_requested`) instead
        of its usual action. None reads ``COBRE_COMM_GRACEFUL``, which the launcher reads too;
        ``""`` means no signals.

    Returns
    -------
    Communicator
        Of one of the four backends, or of a backend that another distribution has registered.

    Raises
    ------
    InvalidBackend
        For a name that no backend has.
    BackendNotAvailable
        For a backend that cannot be used here.
    MissingConfiguration
        If variables that the backend needs are not set.
    InitializationFailed
        If the backend cannot start, for example because a rank does not arrive. If a launcher has
        announced several ranks, and no backend here can connect them. Or if a rank has started this
        process: the process cannot be that rank too. Without ``kind``, such a process works alone.
    ValueError
        If ``graceful`` names a signal that cannot ask to stop, or if the backend takes no signals.
    TypeError
        If ``kind`` is neither a backend nor a configuration.

    Examples
    --------
    >>> from cobre_comm import create_communicator
    >>> with create_communicator("local") as comm:
    ...     print(f"rank {comm.rank} of {comm.size} on {comm.backend}")
    rank 0 of 1 on local
    """
    signals = graceful_signals(os.environ.get(VARIABLE, "") if graceful is None else graceful)
    comm = _create_any(kind)
    report_pipe.say_met()
    if signals:
        _take_signals(comm, signals)
    return comm


def _take_signals(comm: Communicator, signals: Collection[int]) -> None:
    from cobre_comm.backends.kernel_backend import KernelBackend

    if not isinstance(comm, KernelBackend):
        comm.close()
        raise ValueError(f"the backend {comm.backend} takes no signals; unset {VARIABLE}")
    comm._take_signals(signals)


def _create_any(kind: BackendKind | Config | str | None) -> Communicator:
    report_pipe.install()
    if isinstance(kind, Config):
        spec = next(s for s in SPECS if s.config is type(kind))
        if _is_of_environment(kind):
            _take_seat(spec.name)
        return _create(spec.name, f"a {type(kind).__name__} was passed", kind)
    if kind is None:
        name = os.environ.get("COBRE_COMM_BACKEND") or "auto"
        reason = f"COBRE_COMM_BACKEND={name}"
    elif isinstance(kind, BackendKind):
        name, reason = kind.value, "the caller asked for it"
    elif isinstance(kind, str):
        name, reason = kind, "the caller asked for it"
    else:
        raise TypeError(
            f"kind must be a BackendKind, a configuration, a name or None, got {kind!r}"
        )
    name = name.strip().lower()
    is_auto = name == BackendKind.AUTO.value
    taken = "" if name == BackendKind.LOCAL.value else seat.taken_by_another()
    if taken and (kind is None or is_auto) and not seat.imports_its_script():
        logger.warning("%s; this one works alone, on backend local", taken)
        return _create(BackendKind.LOCAL.value, taken)
    if is_auto and not taken:
        name, reason = _detect(os.environ)
    if name != BackendKind.LOCAL.value:
        _take_seat(name)
    return _create(name, reason)


def _is_of_environment(config: Config) -> bool:
    """Whether a configuration is for the same seat as the environment."""
    try:
        told = type(config).from_env()
    except BackendError:
        return False
    facts = ("name", "coordinator", "port", "rank", "size")
    return all(getattr(told, fact, None) == getattr(config, fact, None) for fact in facts)


def _take_seat(name: str) -> None:
    """Take the seat that the environment names; ``InitializationFailed`` if a rank has taken it."""
    taken = seat.taken_by_another()
    if taken and seat.imports_its_script():
        raise InitializationFailed(
            name,
            f"{taken}; a child of multiprocessing imports the script of its parent, so put what "
            'the script does under if __name__ == "__main__":',
        )
    if taken:
        raise InitializationFailed(
            name,
            f"{taken}; set COBRE_COMM_BACKEND=local if this process works alone, or unset "
            f"{seat.VARIABLE} if this process is the rank instead",
        )
    seat.claim()


def _detect(environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the backend that ``auto`` takes, and the reason for the choice."""
    job = foreign_job(environ)
    for spec in reversed(SPECS):
        variable = spec.detect(environ)
        if variable == "SLURM_PROCID" and job is not None and not job.has_pmi:
            continue  # the launcher offers no PMI, so MPI would find one rank only
        if variable and spec.is_available():
            return spec.name, f"{variable} is set"
    if job is not None and BY_NAME["tcp"].is_available():
        return "tcp", f"the launcher of {job.name} announces {job.size} ranks"
    others = announced(environ)
    if others.size > 1:
        raise InitializationFailed(
            "local",
            f"this process would be rank 0 of 1, but {others}: each of them would do all the work. "
            f"To start them as one job {others.remedy}",
        )
    return "local", "nothing announces more than one rank"


def _create(name: str, reason: str, config: Config | None = None) -> Communicator:
    spec = BY_NAME.get(name)
    if spec is not None and spec.is_available():
        comm = spec.create(config)
    elif plugin := _plugins().get(name):
        comm = plugin.load()()
    elif spec is not None:
        raise BackendNotAvailable(name, available_backends(), spec.why_not())
    else:
        raise InvalidBackend(name, available_backends())
    logger.info("rank %d of %d on backend %s: %s", comm.rank, comm.size, name, reason)
    return comm
