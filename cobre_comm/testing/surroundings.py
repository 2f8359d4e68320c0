"""The environment that makes a process a rank, and what a job may leave behind."""

from __future__ import annotations

import os
import pathlib
import secrets
import socket

SHM_FOLDER = pathlib.Path("/dev/shm")


def _prefix() -> str:
    return f"cobre-test-{os.getpid()}-"


def new_job_name() -> str:
    """Return a random name for the segment of a job; :func:`leftovers` looks for such names."""
    return f"/{_prefix()}{secrets.token_hex(6)}"


def leftovers() -> list[str]:
    """Return the names in shared memory that jobs of this process have left behind."""
    if not SHM_FOLDER.is_dir():
        return []
    return sorted(path.name for path in SHM_FOLDER.glob(f"{_prefix()}*"))


def rank_environment(backend: str, size: int) -> list[dict[str, str]]:
    """Return the environment variables of every rank of a new job.

    Parameters
    ----------
    backend : str
        ``"local"``, ``"shm"``, ``"tcp"``, or the name of another distribution's backend, which
        gets ``COBRE_RANK`` and ``COBRE_SIZE``.
    size : int
        Number of ranks; 1 for ``local``.

    Returns
    -------
    list of dict
        One per rank, in rank order.
    """
    if backend == "local" and size != 1:
        raise ValueError(f"local has one rank, not {size}")
    common = {"COBRE_COMM_BACKEND": backend}
    if backend == "shm":
        common |= {"COBRE_SHM_NAME": new_job_name(), "COBRE_SHM_SIZE": str(size)}
    elif backend == "tcp":
        common |= {
            "COBRE_TCP_COORDINATOR": "127.0.0.1",
            "COBRE_TCP_BIND_ADDR": "127.0.0.1",
            "COBRE_TCP_PORT": str(_free_port()),
            "COBRE_TCP_SIZE": str(size),
            "COBRE_TCP_TOKEN": secrets.token_hex(16),
        }
    prefix = {"shm": "COBRE_SHM", "tcp": "COBRE_TCP"}.get(backend, "COBRE")
    if prefix == "COBRE":
        common["COBRE_SIZE"] = str(size)
    return [{**common, f"{prefix}_RANK": str(rank)} for rank in range(size)]


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port
