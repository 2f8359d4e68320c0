"""Jobs of other launchers: Slurm's ``srun``, and torchrun.

Such a launcher tells each process its rank, the size and a machine. The port is made of the job's
name or numbers. The secret is in ``COBRE_TCP_TOKEN``, or rank 0 gives it in a file together with
its machine (``token_file.py``).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from cobre_comm.backends.tcp.token_file import PREFIX, SUFFIX, told_by_file
from cobre_comm.config import TcpConfig

# How long ranks that are not started together wait for each other: the last launcher may be started
# by hand, and each rank may have to compile first.
CONNECT_TIMEOUT_MS = "300000"
FIRST_PORT, PORTS = 20000, 10000  # below the ports that Linux gives to connections
_STEP = ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NODELIST")
_TORCH = ("RANK", "MASTER_ADDR", "MASTER_PORT")
_made = itertools.count()  # communicators of this process that met by a file


class ForeignJob(NamedTuple):
    """The facts that another launcher has told this process."""

    name: str  # of the job: the same on all its ranks, and on no other's
    rank: str
    size: str
    coordinator: str  # the machine of rank 0
    port: int  # where rank 0 listens
    folder: str  # a folder that all ranks should see; empty: the working directory
    has_pmi: bool  # whether the launcher offers PMI or PMIx, by which an MPI finds its ranks

    def variables(self) -> dict[str, str]:
        """Return the variables that our own launcher would have set."""
        return {
            "COBRE_TCP_RANK": self.rank,
            "COBRE_TCP_SIZE": self.size,
            "COBRE_TCP_COORDINATOR": self.coordinator,
            "COBRE_TCP_PORT": str(self.port),
            "COBRE_TCP_CONNECT_TIMEOUT_MS": CONNECT_TIMEOUT_MS,
        }


def foreign_job(environ: Mapping[str, str]) -> ForeignJob | None:
    """Return the job of several ranks that another launcher has started; None without one."""
    if _announces("SLURM_STEP_NUM_TASKS", _STEP, environ):
        return _step(environ)
    if _announces("WORLD_SIZE", _TORCH, environ):
        return _torch(environ)
    return None


def _announces(size: str, others: tuple[str, ...], environ: Mapping[str, str]) -> bool:
    several = environ.get(size, "").isdigit() and int(environ[size]) > 1
    return several and all(environ.get(name) for name in others)


def _step(environ: Mapping[str, str]) -> ForeignJob:
    """Return a step of a Slurm job."""
    job, step = environ["SLURM_JOB_ID"], environ["SLURM_STEP_ID"]
    nodes, is_first = environ["SLURM_STEP_NODELIST"], environ["SLURM_PROCID"] == "0"
    # A requeued job keeps its number, and its steps begin again.
    words = (environ.get("SLURM_CLUSTER_NAME", ""), job, environ.get("SLURM_RESTART_COUNT", "0"))
    return ForeignJob(
        name=".".join(("slurm", *words, step)),
        rank=environ["SLURM_PROCID"],
        size=environ["SLURM_STEP_NUM_TASKS"],
        # The list is sorted. If the user has placed tasks, rank 0 may be elsewhere; it knows where.
        coordinator=(is_first and environ.get("SLURMD_NODENAME")) or first_host(nodes),
        port=_port(int(job) * 61 + int(step)),  # apart for the steps of a job, and for neighbours
        folder=environ.get("SLURM_SUBMIT_DIR", ""),
        has_pmi=environ.get("SLURM_MPI_TYPE", "none") != "none" or "PMIX_RANK" in environ,
    )


def _torch(environ: Mapping[str, str]) -> ForeignJob:
    """Return a job of torchrun. ``MASTER_PORT`` is in use by torchrun's own store."""
    host, port = environ["MASTER_ADDR"], environ["MASTER_PORT"]
    run = environ.get("TORCHELASTIC_RUN_ID", "")
    words = ("torch", host, port, run, environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    name = ".".join(words).replace("/", "_")
    return ForeignJob(
        name=name,
        rank=environ["RANK"],
        size=environ["WORLD_SIZE"],
        coordinator=host,
        port=_port(zlib.crc32(name.encode())),
        folder="",
        has_pmi=False,
    )


def _port(number: int) -> int:
    return FIRST_PORT + number % PORTS


def first_host(nodelist: str) -> str:
    """Return the first name of a list in Slurm's notation, such as ``n[01-04,7],gpu1``."""
    first = re.split(r",(?![^\[]*\])", nodelist)[0]
    return re.sub(r"\[([^],-]*)[^]]*\]", r"\1", first)


@contextlib.contextmanager
def configured(environ: Mapping[str, str]) -> Iterator[TcpConfig]:
    """Give the configuration that the environment tells, while the ranks meet.

    A variable that the user has set comes before one that the launcher implies.
    """
    job = None if environ.get("COBRE_TCP_RANK") else foreign_job(environ)
    if job is None:
        yield TcpConfig.from_env(environ)
        return
    set_by_user = {name: value for name, value in environ.items() if value}
    config = TcpConfig.from_env(job.variables() | set_by_user)
    if config.token is not None:
        yield config
        return
    folder = environ.get("COBRE_TCP_TOKEN_DIR") or job.folder
    name = f"{PREFIX}{job.name}.{next(_made)}{SUFFIX}"
    words = f"{config.coordinator} {os.urandom(32).hex()}"
    timeout_s = config.connect_timeout_ms / 1000
    with told_by_file(folder, name, config.rank, words, timeout_s) as told:
        coordinator, _, token = told.partition(" ")
        coordinator = environ.get("COBRE_TCP_COORDINATOR") or coordinator
        yield replace(config, token=token, coordinator=coordinator)
