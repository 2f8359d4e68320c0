"""Configuration of the backends: from the caller, or from environment variables."""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar

from cobre_comm import old_names
from cobre_comm.errors import InitializationFailed, InvalidBackend, MissingConfiguration

# While ranks meet over sockets, rank 0 sends the parts of all ranks to every rank. Sending them
# takes two seconds for 4,096 ranks, and minutes for 65,536 (docs/design/growth.md). Also, a rank
# has to fit into the 12 bits of ``nodes/arrival.py``.
MAX_RANKS = 4096
SHM_NAME_LIMIT = 250
LONGEST_DURATION = 1e9
LARGEST_EAGER_BYTES = 2**31
LATE_VARIABLE = "COBRE_TEST_LATE_SECS"  # the variable by which tests shorten LATE_S
LATE_S = 10.0
TIMEOUT_S = 60.0
LEADERS_VARIABLES = "COBRE_COMM_LEADERS COBRE_LEADERS"
PRETEND_NODES = {  # by backend: the variables that name the node of each rank, for tests
    "mpi": "COBRE_TEST_PRETEND_NODES COBRE_MPI_PRETEND_NODES",
    "tcp": "COBRE_TEST_PRETEND_NODES COBRE_TCP_PRETEND_NODES",
}


def prints_stats() -> bool:
    """Whether a communicator prints its statistics when it is closed: ``COBRE_COMM_STATS=1``."""
    return os.environ.get("COBRE_COMM_STATS", "0") not in ("", "0")


class BackendKind(enum.Enum):
    """The backend to use; ``AUTO`` finds it by the variables that the launcher has set.

    Examples
    --------
    >>> from cobre_comm import BackendKind, create_communicator
    >>> create_communicator(BackendKind.LOCAL)
    LocalBackend(rank=0, size=1)
    """

    AUTO = "auto"
    MPI = "mpi"
    TCP = "tcp"
    SHM = "shm"
    LOCAL = "local"

    @classmethod
    def parse(cls, name: str) -> BackendKind:
        """Return the member that has this name, in upper or lower case.

        Parameters
        ----------
        name : str
            Such as ``"shm"``; spaces around it are ignored.

        Returns
        -------
        BackendKind
            The member.

        Raises
        ------
        InvalidBackend
            If no member has that name.

        Examples
        --------
        >>> from cobre_comm import BackendKind
        >>> BackendKind.parse("SHM")
        <BackendKind.SHM: 'shm'>
        """
        try:
            return cls(name.strip().lower())
        except ValueError:
            raise InvalidBackend(
                name, [kind.value for kind in cls if kind is not cls.AUTO]
            ) from None


T = TypeVar("T")
_Config = TypeVar("_Config", "ShmConfig", "TcpConfig", "MpiConfig")


def _flag(text: str) -> bool:
    return int(text) != 0


def _integers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())


_WANTED: dict[Any, str] = {float: "a number", _integers: "a list of integers"}


def _value(backend: str, environ: Mapping[str, str], name: str, convert: Callable[[str], T]) -> T:
    """Return the value of a variable that is set."""
    text = environ[name]
    try:
        return convert(text)
    except ValueError:
        wanted = _WANTED.get(convert, "an integer")
        raise InitializationFailed(backend, f"{name}={text!r} is not {wanted}") from None


def _read(
    cls: type[_Config],
    backend: str,
    environ: Mapping[str, str] | None,
    /,
    **variables: tuple[str, Callable[[str], Any]],
) -> _Config:
    """Make a configuration from variables; a field that has no variable set keeps its default.

    A field may have several variables, with spaces between their names. The first of them that is
    set counts. An empty variable is like one that is not set.
    """
    environ = os.environ if environ is None else environ
    required = [variables[each.name][0] for each in fields(cls) if each.default is MISSING]
    missing = [name for name in required if not environ.get(name)]
    if missing:
        raise MissingConfiguration(backend, missing)
    given = {
        field: (name, convert)
        for field, (names, convert) in variables.items()
        if (name := chosen(environ, names))
    }
    return cls(**{field: _value(backend, environ, *told) for field, told in given.items()})


def chosen(environ: Mapping[str, str], names: str) -> str:
    """Return the name of the first of these variables that is set; "" if none of them is set."""
    name = next((name for name in names.split() if environ.get(name)), "")
    old_names.warn_of_variable(name)
    return name


def late_s(backend: str) -> float:
    """Return the seconds until the log reports a late rank; 0 if the log shall not report any."""
    name = chosen(os.environ, f"{LATE_VARIABLE} COBRE_COMM_LATE_SECS")
    seconds = _value(backend, os.environ, name, float) if name else LATE_S
    _check_duration(backend, name, seconds)
    return seconds


def _require(backend: str, is_right: bool, problem: str) -> None:
    if not is_right:
        raise InitializationFailed(backend, problem)


def _check_rank(backend: str, rank: int, size: int) -> None:
    _require(backend, 1 <= size <= MAX_RANKS, f"size {size} is not between 1 and {MAX_RANKS}")
    _require(backend, 0 <= rank < size, f"rank {rank} is not between 0 and {size - 1}")


def _check_duration(backend: str, what: str, value: float | None) -> None:
    is_right = value is None or 0 <= value <= LONGEST_DURATION  # False for NaN too
    said = f"{what} is {value!r}; pass 0 (no limit) to {LONGEST_DURATION:g}"
    _require(backend, is_right, said)


def _check_common(backend: str, config: Config) -> None:
    """Check the fields that all configurations have."""
    _check_duration(backend, "timeout_s", config.timeout_s)
    _check_duration(backend, "spin_us", config.spin_us)
    room = config.buffer_bytes
    said = f"buffer_bytes is {room}; pass 4096 to 2**40 bytes per rank"
    _require(backend, room is None or 4096 <= room <= 2**40, said)


def _check_leaders(backend: str, value: int | None) -> None:
    said = f"leaders is {value}; pass 1 or more (COBRE_COMM_LEADERS), or None to have it chosen"
    _require(backend, value is None or value >= 1, said)


@dataclass(frozen=True, kw_only=True)
class ShmConfig:
    """Configuration of ``shm``: the segment by which the ranks of one machine meet, and its use.

    Parameters
    ----------
    name : str
        Name of the shared segment, the same on all ranks: ``/`` and up to 250 other characters.
    rank, size : int
        This rank, and the number of ranks.
    timeout_s : float
        Longest wait for a live peer in one collective, in seconds; 0 means no limit.
    buffer_bytes : int or None
        Bytes of collective buffer per rank; all ranks take rank 0's value. None: an equal share of
        16 MiB, but at least 48 KiB. At most 768 KiB if each rank has a core, else at most 3 MiB.
    numa_interleave : bool
        Whether the pages of the segment come from all NUMA nodes in turn.
    spin_us : float or None
        How long a wait spins before it yields and blocks, in microseconds. None: 30 if each rank
        has a core, else 0.

    Raises
    ------
    InitializationFailed
        For a value that cannot work.

    Examples
    --------
    >>> from cobre_comm import ShmConfig, create_communicator
    >>> with create_communicator(ShmConfig(name="/valley", rank=0, size=1)) as comm:
    ...     comm
    ShmBackend(rank=0, size=1)
    """

    name: str
    rank: int
    size: int
    timeout_s: float = TIMEOUT_S
    buffer_bytes: int | None = None
    numa_interleave: bool = False
    spin_us: float | None = None

    def __post_init__(self) -> None:
        tail = self.name[1:]
        is_one = self.name.startswith("/") and tail and "/" not in tail and "\0" not in tail
        said = f"segment name {self.name!r} must be '/' and a name without another '/'"
        _require("shm", bool(is_one), said)
        is_short = len(self.name) <= SHM_NAME_LIMIT
        _require("shm", is_short, f"segment name is longer than {SHM_NAME_LIMIT}")
        _check_rank("shm", self.rank, self.size)
        _check_common("shm", self)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> ShmConfig:
        """Read ``COBRE_SHM_*``, and the variables that ``shm`` has in common with other backends.

        Parameters
        ----------
        environ : mapping of str to str, optional
            The variables; by default ``os.environ``.

        Returns
        -------
        ShmConfig
            The configuration; a field that has no variable set keeps its default.

        Raises
        ------
        MissingConfiguration
            If ``COBRE_SHM_NAME``, ``COBRE_SHM_RANK`` or ``COBRE_SHM_SIZE`` is not set.
        InitializationFailed
            For a value that cannot work.

        Examples
        --------
        >>> from cobre_comm import ShmConfig
        >>> variables = {"COBRE_SHM_NAME": "/valley", "COBRE_SHM_RANK": "1", "COBRE_SHM_SIZE": "4"}
        >>> config = ShmConfig.from_env(variables)
        >>> config.rank, config.size, config.timeout_s
        (1, 4, 60.0)
        """
        return _read(
            cls, "shm", environ,
            name=("COBRE_SHM_NAME", str),
            rank=("COBRE_SHM_RANK", int),
            size=("COBRE_SHM_SIZE", int),
            timeout_s=("COBRE_SHM_TIMEOUT_SECS COBRE_COMM_TIMEOUT_SECS", float),
            buffer_bytes=("COBRE_SHM_BUFFER_BYTES COBRE_COMM_BUFFER_BYTES", int),
            numa_interleave=("COBRE_SHM_NUMA_INTERLEAVE", _flag),
            spin_us=("COBRE_COMM_SPIN_US", float),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TcpConfig:
    """Configuration of ``tcp``: the address by which ranks meet, the limits, and shared memory.

    Parameters
    ----------
    coordinator : str or None
        Host of rank 0; required on the other ranks.
    rank, size : int
        This rank, and the number of ranks.
    port : int
        Port of rank 0.
    bind_addr : str
        Address at which rank 0 listens.
    timeout_s : float
        Longest wait for a live peer in one collective, in seconds; 0 means no limit.
    connect_timeout_ms : int
        Longest wait for the rendezvous, in milliseconds; 0 means no limit.
    token : str or None
        Shared secret of the job; never shown.
    spin_us : float or None
        How long a wait spins before it yields and blocks, in microseconds. None: 0 if ranks share
        cores, 50 if every rank is a node of its own, else 30.
    eager_bytes : int or None
        Largest payload of a node, in bytes, that is sent together with its header; a larger payload
        is sent later. All ranks take rank 0's value. None: 65536 on one machine, else 8192.
    share : bool
        Whether ranks that can open each other's shared memory use it. If not, every rank is a node
        of its own.
    pretend_nodes : tuple of int
        For tests: rank r is taken to be on node ``pretend_nodes[r % len(pretend_nodes)]``. Empty:
        the ranks find out which of them share memory.
    buffer_bytes : int or None
        Bytes of collective buffer per rank in the memory of a node. None: an equal share of 16 MiB,
        but at least 48 KiB. At most 768 KiB if each rank has a core, else at most 3 MiB.
    numa_interleave : bool
        Whether the pages of shared memory come from all NUMA nodes in turn.
    leaders : int or None
        How many ranks of each node move large payloads between nodes; the smallest value of all
        ranks holds. None: one for each 20 Gb/s of the cable if each rank has a core, else one.

    Raises
    ------
    InitializationFailed
        For a value that cannot work.
    MissingConfiguration
        On a worker without ``coordinator``.

    Examples
    --------
    >>> from cobre_comm import TcpConfig
    >>> TcpConfig(coordinator="node-a", rank=1, size=2, token="secret").port
    29500
    """

    rank: int
    size: int
    coordinator: str | None = None
    port: int = 29500
    bind_addr: str = "0.0.0.0"
    timeout_s: float = TIMEOUT_S
    connect_timeout_ms: int = 30000
    token: str | None = field(default=None, repr=False)
    spin_us: float | None = None
    eager_bytes: int | None = None
    share: bool = True
    pretend_nodes: tuple[int, ...] = ()
    buffer_bytes: int | None = None
    numa_interleave: bool = False
    leaders: int | None = None

    def __post_init__(self) -> None:
        _check_rank("tcp", self.rank, self.size)
        _check_common("tcp", self)
        is_right = self.eager_bytes is None or 0 <= self.eager_bytes <= LARGEST_EAGER_BYTES
        said = f"eager_bytes is {self.eager_bytes}; pass 0 to {LARGEST_EAGER_BYTES}"
        _require("tcp", is_right, said)
        _check_duration("tcp", "connect_timeout_ms", self.connect_timeout_ms)
        _check_leaders("tcp", self.leaders)
        said = f"port {self.port} is not between 0 and 65535"
        _require("tcp", 0 <= self.port <= 65535, said)
        if self.rank > 0 and not self.coordinator:
            raise MissingConfiguration("tcp", ["COBRE_TCP_COORDINATOR"])

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> TcpConfig:
        """Read ``COBRE_TCP_*``, and the variables that ``tcp`` has in common with other backends.

        Parameters
        ----------
        environ : mapping of str to str, optional
            The variables; by default ``os.environ``.

        Returns
        -------
        TcpConfig
            The configuration; a field that has no variable set keeps its default.

        Raises
        ------
        MissingConfiguration
            If ``COBRE_TCP_RANK`` or ``COBRE_TCP_SIZE`` is not set; on a worker also if
            ``COBRE_TCP_COORDINATOR`` is not set.
        InitializationFailed
            For a value that cannot work.

        Examples
        --------
        >>> from cobre_comm import TcpConfig
        >>> rank = {"COBRE_TCP_RANK": "1", "COBRE_TCP_SIZE": "4"}
        >>> TcpConfig.from_env({**rank, "COBRE_TCP_COORDINATOR": "node-a"}).coordinator
        'node-a'
        """
        return _read(
            cls, "tcp", environ,
            rank=("COBRE_TCP_RANK", int),
            size=("COBRE_TCP_SIZE", int),
            coordinator=("COBRE_TCP_COORDINATOR", str),
            port=("COBRE_TCP_PORT", int),
            bind_addr=("COBRE_TCP_BIND_ADDR", str),
            timeout_s=("COBRE_TCP_TIMEOUT_SECS COBRE_COMM_TIMEOUT_SECS", float),
            connect_timeout_ms=("COBRE_TCP_CONNECT_TIMEOUT_MS", int),
            token=("COBRE_TCP_TOKEN", str),
            spin_us=("COBRE_COMM_SPIN_US", float),
            eager_bytes=("COBRE_TCP_EAGER_BYTES", int),
            share=("COBRE_TCP_SHARE", _flag),
            pretend_nodes=(PRETEND_NODES["tcp"], _integers),
            buffer_bytes=("COBRE_TCP_BUFFER_BYTES COBRE_COMM_BUFFER_BYTES", int),
            numa_interleave=("COBRE_SHM_NUMA_INTERLEAVE", _flag),
            leaders=(LEADERS_VARIABLES, int),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class MpiConfig:
    """Configuration of ``mpi``: limits and memory of ranks that MPI has started.

    Parameters
    ----------
    timeout_s : float
        Longest wait for a live peer in one collective, in seconds; 0 means no limit.
    buffer_bytes : int or None
        Bytes of collective buffer per rank in the memory of a node. None: an equal share of 16 MiB,
        but at least 48 KiB. At most 768 KiB if each rank has a core, else at most 3 MiB.
    numa_interleave : bool
        Whether the pages of shared memory come from all NUMA nodes in turn.
    spin_us : float or None
        How long a wait spins before it yields and blocks, in microseconds. None: 30 if each rank
        has a core, else 0.
    pretend_nodes : tuple of int
        For tests: rank r is taken to be on node ``pretend_nodes[r % len(pretend_nodes)]``. The
        ranks must be on one machine. Empty: the nodes are those that MPI reports.
    aborts : bool
        Whether an uncaught exception on one rank ends the whole job.
    leaders : int or None
        How many ranks of each node move large payloads between nodes; the smallest value of all
        ranks holds. None: one for each 20 Gb/s of the cable if each rank has a core, else one.

    Raises
    ------
    InitializationFailed
        For a value that cannot work.

    Examples
    --------
    >>> from cobre_comm import MpiConfig
    >>> MpiConfig(timeout_s=600.0).aborts
    True
    """

    timeout_s: float = TIMEOUT_S
    buffer_bytes: int | None = None
    numa_interleave: bool = False
    spin_us: float | None = None
    pretend_nodes: tuple[int, ...] = ()
    aborts: bool = True
    leaders: int | None = None

    def __post_init__(self) -> None:
        _check_common("mpi", self)
        _check_leaders("mpi", self.leaders)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> MpiConfig:
        """Read ``COBRE_MPI_*``, and the variables that ``mpi`` has in common with other backends.

        Parameters
        ----------
        environ : mapping of str to str, optional
            The variables; by default ``os.environ``.

        Returns
        -------
        MpiConfig
            The configuration; a field that has no variable set keeps its default.

        Raises
        ------
        InitializationFailed
            For a value that cannot work.

        Examples
        --------
        >>> from cobre_comm import MpiConfig
        >>> MpiConfig.from_env({"COBRE_MPI_ABORT": "0"}).aborts
        False
        """
        return _read(
            cls, "mpi", environ,
            timeout_s=("COBRE_MPI_TIMEOUT_SECS COBRE_COMM_TIMEOUT_SECS", float),
            buffer_bytes=("COBRE_MPI_BUFFER_BYTES COBRE_COMM_BUFFER_BYTES", int),
            numa_interleave=("COBRE_SHM_NUMA_INTERLEAVE", _flag),
            spin_us=("COBRE_COMM_SPIN_US", float),
            pretend_nodes=(PRETEND_NODES["mpi"], _integers),
            aborts=("COBRE_MPI_ABORT", _flag),
            leaders=(LEADERS_VARIABLES, int),
        )  # fmt: skip


Config = ShmConfig | TcpConfig | MpiConfig
