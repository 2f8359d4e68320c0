"""Choosing a backend: from the caller, from the environment, or from what is there."""

from __future__ import annotations

import importlib.metadata
import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from cobre_comm import report_pipe
from cobre_comm.config import BackendKind, ShmConfig, TcpConfig
from cobre_comm.errors import BackendNotAvailable, InvalidBackend

if TYPE_CHECKING:
    from cobre_comm.communicator import Communicator

logger = logging.getLogger("cobre_comm")

ENTRY_POINT_GROUP = "cobre_comm.backends"
MPI_LAUNCH_VARIABLES = (
    "PMI_RANK",
    "PMI_SIZE",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "MPI_LOCALRANKID",
    "SLURM_PROCID",
)
_MPI_SIZE_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")


def available_backends() -> list[str]:
    """Return the names of the backends that can be used here.

    Returns
    -------
    list of str
        Built-in ones first, then those that other distributions add through the entry-point
        group ``cobre_comm.backends``.
    """
    found = ["local"]
    if os.name == "posix":
        found += ["shm", "tcp"]
        if _has_mpi():
            found.append("mpi")
    return found + [name for name in _plugins() if name not in found]


def _has_mpi() -> bool:
    from cobre_comm.backends.mpi.library import is_importable

    return is_importable()


def _plugins() -> dict[str, importlib.metadata.EntryPoint]:
    group = importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)
    return {entry.name: entry for entry in group}


def create_communicator(
    kind: BackendKind | ShmConfig | TcpConfig | str | None = None,
) -> Communicator:
    """Create the communicator of this process; collective where there are several ranks.

    Parameters
    ----------
    kind : BackendKind, ShmConfig, TcpConfig, str or None
        Which backend, or a configuration that implies it. None reads ``COBRE_COMM_BACKEND``
        (default ``auto``). The other variables are listed in the README.

    Returns
    -------
    Communicator
        One of the four backends, or one that another distribution registered.

    Raises
    ------
    InvalidBackend
        For a name that is not a backend's.
    BackendNotAvailable
        For one that cannot be used here.
    MissingConfiguration
        If variables that the backend needs are not set.
    InitializationFailed
        If the ranks do not meet.
    """
    report_pipe.install()
    if isinstance(kind, ShmConfig):
        return _create("shm", "a ShmConfig was passed", kind)
    if isinstance(kind, TcpConfig):
        return _create("tcp", "a TcpConfig was passed", kind)
    if kind is None:
        name = os.environ.get("COBRE_COMM_BACKEND") or "auto"
        reason = f"COBRE_COMM_BACKEND={name}"
    elif isinstance(kind, BackendKind):
        name, reason = kind.value, "the caller asked for it"
    elif isinstance(kind, str):
        name, reason = kind, "the caller asked for it"
    else:
        raise TypeError(
            f"kind must be a BackendKind, a ShmConfig, a TcpConfig, a name or None, got {kind!r}"
        )
    name = name.strip().lower()
    if name == BackendKind.AUTO.value:
        name, reason = _detect(os.environ)
    return _create(name, reason)


def _detect(environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the backend that ``auto`` takes, and why."""
    announced = [variable for variable in MPI_LAUNCH_VARIABLES if variable in environ]
    if announced and os.name == "posix" and _has_mpi():
        return "mpi", f"{announced[0]} is set"
    if environ.get("COBRE_TCP_COORDINATOR"):
        return "tcp", "COBRE_TCP_COORDINATOR is set"
    if environ.get("COBRE_SHM_NAME"):
        return "shm", "COBRE_SHM_NAME is set"
    for variable in _MPI_SIZE_VARIABLES:
        if environ.get(variable, "1") not in ("", "1"):
            # Every process would be rank 0 of 1 and do the whole work: say so instead.
            logger.error("%s=%s announces an MPI job", variable, environ[variable])
            raise BackendNotAvailable("mpi", available_backends())
    return "local", "nothing announces more than one rank"


def _create(name: str, reason: str, config: ShmConfig | TcpConfig | None = None) -> Communicator:
    comm = _construct(name, config)
    logger.info("rank %d of %d on backend %s: %s", comm.rank, comm.size, name, reason)
    return comm


def _construct(name: str, config: ShmConfig | TcpConfig | None) -> Communicator:
    is_posix = os.name == "posix"
    if name == "local":
        from cobre_comm.backends.local import LocalBackend

        return LocalBackend()
    if name == "shm" and is_posix:
        from cobre_comm.backends.shm import ShmBackend

        return ShmBackend(config if isinstance(config, ShmConfig) else ShmConfig.from_env())
    if name == "tcp" and is_posix:
        from cobre_comm.backends.tcp import TcpBackend

        return TcpBackend(config if isinstance(config, TcpConfig) else TcpConfig.from_env())
    if name == "mpi" and is_posix and _has_mpi():
        from cobre_comm.backends.mpi.backend import MpiBackend

        return MpiBackend()
    plugin = _plugins().get(name)
    if plugin is not None:
        comm: Communicator = plugin.load()()
        return comm
    if name in {kind.value for kind in BackendKind}:
        raise BackendNotAvailable(name, available_backends())
    raise InvalidBackend(name, available_backends())
