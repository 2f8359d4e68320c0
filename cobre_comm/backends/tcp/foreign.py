"""Jobs of other launchers: Slurm's ``srun``, and torchrun.

Such a launcher tells each process its rank, the number of ranks and the machine of rank 0. From the
job's name or numbers the ranks derive the port. From the job's name and ``COBRE_TCP_TOKEN`` they
derive the secret.
"""

from __future__ import annotations

import hmac
import re
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from cobre_comm.config import TcpConfig
from cobre_comm.errors import InitializationFailed
from cobre_comm.reports.launcher import launcher_name

# How long ranks that are not started together wait for each other: a launcher may be started by
# hand, and each rank may have to compile first.
CONNECT_TIMEOUT_MS = "300000"
FIRST_PORT, PORTS = 20000, 10000  # below the ports that Linux gives to outgoing connections
_STEP = ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NODELIST")
_TORCH = ("RANK", "MASTER_ADDR", "MASTER_PORT")


class ForeignJob(NamedTuple):
    """The facts that another launcher has told this process."""

    name: str  # of the job: the same on all its ranks, and of no other job
    rank: str
    size: str
    coordinator: str  # the name of rank 0's machine
    port: int  # the port at which rank 0 listens
    has_pmi: bool  # whether the launcher offers PMI or PMIx, which an MPI needs to find its ranks

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
    """Return the job of several ranks that another launcher has started; None if there is none."""
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
    # A requeued job keeps its number, and numbers its steps from 0 again. So its restarts are part
    # of the name too.
    words = (environ.get("SLURM_CLUSTER_NAME", ""), job, environ.get("SLURM_RESTART_COUNT", "0"))
    return ForeignJob(
        name=".".join(("slurm", *words, step)),
        rank=environ["SLURM_PROCID"],
        size=environ["SLURM_STEP_NUM_TASKS"],
        coordinator=first_host(environ["SLURM_STEP_NODELIST"]),
        port=_port(int(job) * 61 + int(step)),  # differs for steps of a job, and for adjacent jobs
        has_pmi=environ.get("SLURM_MPI_TYPE", "none") != "none" or "PMIX_RANK" in environ,
    )


def _torch(environ: Mapping[str, str]) -> ForeignJob:
    """Return a job of torchrun; its port is not ``MASTER_PORT``, which torchrun itself uses."""
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
        has_pmi=False,
    )


def _port(number: int) -> int:
    return FIRST_PORT + number % PORTS


def first_host(nodelist: str) -> str:
    """Return the first name of a list in Slurm's notation, such as ``n[01-04,7],gpu1``."""
    first = re.split(r",(?![^\[]*\])", nodelist)[0]
    return re.sub(r"\[([^],-]*)[^]]*\]", r"\1", first)


def configured(environ: Mapping[str, str]) -> TcpConfig:
    """Return the configuration that the environment describes.

    A variable that the user has set takes precedence over a value that the launcher implies. If
    there is no secret, the ``InitializationFailed`` says how to set one.
    """
    job = None if environ.get("COBRE_TCP_RANK") else foreign_job(environ)
    if job is None:
        return TcpConfig.from_env(environ)
    set_by_user = {name: value for name, value in environ.items() if value}
    config = TcpConfig.from_env(job.variables() | set_by_user)
    if config.token is None:
        launcher = launcher_name(environ) or "another launcher"
        raise InitializationFailed(
            "tcp",
            f"{launcher} has started {job.size} ranks, and they need a secret that all of them "
            f"know; set it before {launcher}, on every machine where you start it to the same: "
            "export COBRE_TCP_TOKEN=$(openssl rand -hex 32)",
        )
    # The user may give one secret to several jobs at a time, but ranks of two jobs must not meet.
    token = hmac.new(config.token.encode(), job.name.encode(), "sha256").hexdigest()
    return replace(config, token=token)
