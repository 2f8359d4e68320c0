"""The facts that the ranks of one job share: backend, size, name, secret, address."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from cobre_comm.backends.spec import Rendezvous
from cobre_comm.config import MAX_RANKS, PRETEND_NODES, BackendKind, chosen


def _new_identity() -> str:
    return f"cobre-{os.getuid()}-{os.urandom(5).hex()}"


@dataclass(frozen=True)
class Job:
    """One job, as the launcher of one node sees it."""

    size: int  # the number of ranks on all nodes together
    backend: str  # the backend of all ranks, never "auto"
    timeout_s: float | None = None  # None: the backend and the environment decide
    # A short name, because macOS allows only 30 characters for a name of shared memory.
    identity: str = field(default_factory=_new_identity)
    # For backends that meet over a network. Random, unless several launchers share it; never shown.
    token: str = field(default_factory=lambda: os.urandom(32).hex(), repr=False)
    survive: bool = False  # whether the other ranks continue when a rank is lost
    restart: int = 0  # how often the job has been started again before
    nodes: int = 1  # the number of launchers; each of them starts an equal share of the ranks
    node: int = 0  # the number of this launcher
    # Where ranks meet over sockets. None until this is known, and for other backends.
    rendezvous: Rendezvous | None = None

    @property
    def ranks(self) -> range:
        """The ranks of this node."""
        share = self.size // self.nodes
        return range(self.node * share, (self.node + 1) * share)

    @property
    def shm_name(self) -> str:
        """Name of the shared segment in which the ranks meet."""
        return f"/{self.identity}"

    def again(self, size: int) -> Job:
        """Return the job of the next attempt; its new name keeps the two attempts apart."""
        restart = self.restart + 1
        return replace(self, size=size, restart=restart, identity=_new_identity())


def check_size(size: int) -> None:
    """Raise ``ValueError`` unless a number of ranks is between 1 and ``MAX_RANKS``."""
    if not 1 <= size <= MAX_RANKS:
        raise ValueError(f"the number of ranks must be between 1 and {MAX_RANKS}, got {size}")


def check_timeout(timeout_s: float | None) -> None:
    """Raise ``TypeError`` or ``ValueError`` unless a timeout is None, or finite and at least 0."""
    if timeout_s is None:
        return
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, numbers.Real):
        raise TypeError(f"the timeout must be a number of seconds, got {timeout_s!r}")
    if not (math.isfinite(timeout_s) and timeout_s >= 0):
        raise ValueError(f"the timeout must be 0 (no limit) or more seconds, got {timeout_s}")


def check_nodes(job: Job, environ: Mapping[str, str]) -> None:
    """Raise ``ValueError`` if the list of pretended nodes does not fit the number of ranks.

    The list names the node of each rank. A list with fewer names than the job has ranks is
    repeated, so its length must divide the number of ranks.
    """
    variable = chosen(environ, PRETEND_NODES.get(job.backend, ""))
    count = len([word for word in environ.get(variable, "").split(",") if word.strip()])
    if count and job.size % count:
        raise ValueError(
            f"{variable} names the nodes of {count} ranks, and the job has {job.size}; name the "
            "node of each rank"
        )


def choose_backend(name: str, size: int, *, prefer_tcp: bool = False) -> str:
    """Return the backend for ``size`` ranks; ``ValueError`` for several ranks over local."""
    kind = BackendKind.parse(name)
    if kind is BackendKind.AUTO:
        several = BackendKind.TCP if prefer_tcp else BackendKind.SHM
        kind = BackendKind.LOCAL if size == 1 else several
    if kind is BackendKind.LOCAL and size > 1:
        raise ValueError(
            f"backend 'local' is one process and cannot have {size} ranks; use shm, or one rank"
        )
    return kind.value
