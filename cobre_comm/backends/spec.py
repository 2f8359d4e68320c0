"""The specification of a backend; ``cobre_comm.backends.SPECS`` is the only list of them.

A specification is light: the module of its communicator is imported when the backend is used.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from cobre_comm.contract.communicator import Communicator


@dataclass(frozen=True)
class Rendezvous:
    """The address at which the ranks of a job over sockets meet."""

    host: str  # the machine of rank 0, by the name under which the other ranks reach it
    port: int
    bind_addr: str  # the address at which rank 0 listens


class JobFacts(Protocol):
    """What specifications read about a job that a launcher starts."""

    @property
    def size(self) -> int: ...  # noqa: D102  # the number of ranks
    @property
    def shm_name(self) -> str: ...  # noqa: D102  # the name of the job's segment
    @property
    def token(self) -> str: ...  # noqa: D102  # the secret of the job
    @property
    def rendezvous(self) -> Rendezvous | None: ...  # noqa: D102  # None before a port is held


def why_not_posix() -> str:
    """Return the reason why several processes cannot work together here, or an empty string."""
    return "" if os.name == "posix" else f"it needs a POSIX system, and this is {os.name}"


@dataclass(frozen=True)
class BackendSpec:
    """The specification of one backend.

    Attributes
    ----------
    name : str
        The value of ``COBRE_COMM_BACKEND`` that chooses this backend. Its package, and the class of
        its communicator, are named after it.
    number : int
        The number of the backend in a communicator's record, by which messages find its name.
    config : type or None
        The configuration that implies this backend; None if the backend has no configuration.
    configured : callable or None
        Returns the configuration that an environment describes. None means that the class of the
        configuration reads the environment itself.
    timeout_variable : str
        The variable that raises the longest wait of a collective.
    auto_variables : tuple of str
        ``auto`` takes this backend if one of these is set, and if the backend is available.
    rank_variables : mapping
        The variables by which a launcher tells a rank of a job where to meet. Each has a function
        that returns the variable's value for a job and a rank.
    why_not : callable
        Returns the reason why the backend cannot be used here, or an empty string.
    """

    name: str
    number: int
    config: type | None = None
    configured: Callable[[Mapping[str, str]], Any] | None = None
    timeout_variable: str = ""
    auto_variables: tuple[str, ...] = ()
    rank_variables: Mapping[str, Callable[[JobFacts, int], str]] = field(default_factory=dict)
    why_not: Callable[[], str] = why_not_posix

    def is_available(self) -> bool:
        """Tell whether the backend can be used here."""
        return not self.why_not()

    def communicator(self) -> Any:
        """Return the class of the communicator."""
        home = importlib.import_module(f"cobre_comm.backends.{self.name}.backend")
        return getattr(home, f"{self.name.capitalize()}Backend")

    def create(self, config: Any) -> Communicator:
        """Make the communicator of this process; if ``config`` is None, read the environment."""
        cls = self.communicator()
        if self.config is None:
            return cast("Communicator", cls())
        if config is None and self.configured is not None:
            config = self.configured(os.environ)
        chosen = self.config.from_env() if config is None else config  # type: ignore[attr-defined]
        return cast("Communicator", cls(config=chosen))

    def detect(self, environ: Mapping[str, str]) -> str:
        """Return the variable that makes ``auto`` take this backend, or an empty string."""
        return next((name for name in self.auto_variables if environ.get(name)), "")
