"""Phases: the parts of a program to which a rank attributes its time."""

from __future__ import annotations

from typing import Protocol

from cobre_kernels.collective.seeing.journal import NAME_BYTES

from cobre_comm.journal.copied import OUTSIDE_ROW, OWN_ROW


class Entered(Protocol):
    """The methods of a communicator that a phase uses."""

    def enter_phase(self, number: int) -> int:
        """Enter a phase; return the number of the phase before."""

    def _resume(self, number: int) -> int:
        """Return to a phase; raise nothing, even if the communicator is closed."""


class Phase:
    """A phase of a program, as a context manager; made by ``Communicator.phase``.

    A phase may be entered again and again, even inside itself.

    Parameters
    ----------
    comm : Communicator
        The communicator that attributes the time.
    number : int
        The number that ``phase_number`` has returned.

    Examples
    --------
    >>> from cobre_comm import LocalBackend
    >>> comm = LocalBackend()
    >>> solving = comm.phase("solve")
    >>> for _ in range(2):
    ...     with solving:
    ...         comm.barrier()
    >>> comm.stats().phases["solve"].entered
    2
    """

    __slots__ = ("_comm", "_number", "_outer")

    def __init__(self, comm: Entered, number: int) -> None:
        self._comm, self._number = comm, number
        self._outer: list[int] = []

    def __enter__(self) -> None:
        self._outer.append(self._comm.enter_phase(self._number))

    def __exit__(self, *raised: object) -> None:
        self._comm._resume(self._outer.pop())


def letters_of(name: object) -> bytes:
    """Return the letters of a new phase's name; raise if it cannot be a name."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a phase must be a str, got {type(name).__name__} {name!r}")
    if not name.strip() or not name.isprintable():
        raise ValueError(f"the name of a phase must be printable, got {name!r}")
    if name in (OUTSIDE_ROW, OWN_ROW):
        raise ValueError(f"{name!r} is a row of its own in statistics; name the phase otherwise")
    letters = name.encode()
    if len(letters) > NAME_BYTES:
        raise ValueError(
            f"the name of a phase has at most {NAME_BYTES} bytes, got {len(letters)}: {name!r}"
        )
    return letters
