"""What a backend is, as one value; ``cobre_comm.backends.SPECS`` is the only list of them.

A specification is light: importing it imports no kernel, no numba and no MPI.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from cobre_kernels.machine.kernel import Kernel

    from cobre_comm.communicator import Communicator


@dataclass(frozen=True)
class Meeting:
    """Where the ranks of a job over sockets meet.

    Parameters
    ----------
    host : str
        The machine of rank 0, as the others reach it.
    port : int
        Its port.
    bind_addr : str
        Where rank 0 listens.
    """

    host: str
    port: int
    bind_addr: str


class Job(Protocol):
    """What a specification needs to know of a job that a launcher starts."""

    @property
    def size(self) -> int: ...  # noqa: D102  # the number of ranks
    @property
    def shm_name(self) -> str: ...  # noqa: D102  # the name of the job's segment
    @property
    def token(self) -> str: ...  # noqa: D102  # its secret
    @property
    def meeting(self) -> Meeting | None: ...  # noqa: D102  # known once a port is held


@dataclass(frozen=True)
class BackendSpec:
    """One backend.

    Attributes
    ----------
    name : str
        As in ``COBRE_COMM_BACKEND``.
    number : int
        In the records of its communicators, for messages.
    about : str
        One line for help texts.
    timeout_variable : str
        The variable that raises the longest wait of a collective.
    config : type
        The configuration that implies this backend, with a ``from_env``; None where there is
        nothing to configure.
    create : callable
        Makes the communicator of this process from a configuration.
    is_available : callable
        Tells whether it can be used here.
    detect : callable
        Returns which variable of an environment makes ``auto`` take it, or "".
    kernels : callable
        Returns what is compiled before ranks start.
    rank_variables : callable
        Returns the variables by which a launcher tells a rank of a job where to meet.
    place_variables : tuple of str
        The variables that say which rank of which job a process is; a launcher drops those that
        another launcher has left.
    """

    name: str
    number: int
    about: str
    timeout_variable: str
    config: type | None
    create: Callable[[Any], Communicator]
    is_available: Callable[[], bool]
    detect: Callable[[Mapping[str, str]], str]
    kernels: Callable[[], Sequence[Kernel]]
    rank_variables: Callable[[Job, int], dict[str, str]]
    place_variables: tuple[str, ...]
