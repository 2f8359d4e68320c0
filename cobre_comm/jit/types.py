"""How a communicator, or a region, becomes an argument of an ``@njit`` function.

numba sees two types: the communicator of ``local``, whose collectives compile to copies, and every
other communicator. So a user's function is compiled once for ``local`` and once for all other
backends. ``values`` says what a value holds. The type's name carries a hash of our sources, so
numba's cache never serves code of another version.
"""

from __future__ import annotations

import functools
import pathlib
from typing import Any

from cobre_kernels.machine.compiling.hashing import hash_of, kernel_sources
from numba import types


@functools.cache
def version_tag() -> str:
    """Return a hash of all sources whose code ends up in a user's compiled function."""
    package = pathlib.Path(__file__).parents[1]
    folders = (package / "jit", package / "journal", package / "common")
    ours = [*package.glob("*.py"), *(path for folder in folders for path in folder.rglob("*.py"))]
    tag: str = hash_of([*kernel_sources(), *ours])
    return tag


class CurrentVersion:
    """A constant of a cached function that no other version of this package can load."""

    def __reduce__(self) -> Any:
        return current_version, (version_tag(),)


def carry_version(context: Any) -> None:
    """Keep the function under compilation from being loaded by another version of this package.

    A value of ours enters compiled code by three doors. As an argument it has its type in the
    signature. What an ``objmode`` block gives has not, nor has a constant: what lowers these calls
    this function, and so does each call and attribute. numba writes the constants of all functions
    that it has linked, so a caller without a type of ours carries the version too.
    """
    constants = getattr(context.environment, "consts", None)  # a wrapper has none
    if constants is not None and not any(isinstance(each, CurrentVersion) for each in constants):
        constants.append(CurrentVersion())


def current_version(tag: str) -> CurrentVersion:
    """Return the constant, or raise what numba takes for a missing file: then it compiles anew."""
    if tag != version_tag():
        raise FileNotFoundError("compiled with another version of cobre_comm")
    return CurrentVersion()


def restored(name: str, class_name: str, *arguments: Any) -> Any:
    """Return a pickled type; of another version, a type that equals no other.

    numba keeps the types of a user's cached function in pickles. It loads them before it looks at
    their version, and writes those of older versions again. So a type is pickled with its own name,
    by the name of this function, which every version has.
    """
    classes = {"CommType": CommType, "LocalCommType": LocalCommType, "RegionType": RegionType}
    current = classes[class_name](*arguments) if class_name in classes else None
    return current if current is not None and current.name == name else types.Opaque(name)


class CommType(types.Type):  # type: ignore[misc]  # numba is untyped
    """A communicator in ``@njit`` code."""

    synchronises = True  # whether calls have ranks to meet

    @property
    def borrowed(self) -> Any:
        """The type that methods get."""
        return BorrowedComm(self)

    def __init__(self) -> None:
        super().__init__(name=f"{type(self).__name__}({version_tag()})")

    def __reduce__(self) -> Any:
        return restored, (self.name, type(self).__name__)


class LocalCommType(CommType):
    """The communicator of ``local``."""

    synchronises = False


class RegionType(types.Type):  # type: ignore[misc]  # numba is untyped
    """A shared region in ``@njit`` code.

    Parameters
    ----------
    dtype : numba type
        Of its elements.
    synchronises : bool
        Whether ``fence`` has ranks to meet.
    """

    def __init__(self, dtype: Any, synchronises: bool) -> None:
        self.view = types.Array(dtype, 1, "C", readonly=True)
        self.memory = types.Array(dtype, 1, "C")
        self.synchronises = synchronises
        super().__init__(name=f"SharedRegion({dtype}, {synchronises}, {version_tag()})")

    @property
    def borrowed(self) -> Any:
        """The type that methods get."""
        return BorrowedRegion(self)

    def __reduce__(self) -> Any:
        arguments = self.view.dtype, self.synchronises
        return restored, (self.name, type(self).__name__, *arguments)


class Borrowed(types.Type):  # type: ignore[misc]  # numba is untyped
    """What a method of ours gets: a communicator or a region that its caller holds.

    Parameters
    ----------
    this : CommType or RegionType
        What it is.
    """

    def __init__(self, this: Any) -> None:
        self.this, self.synchronises = this, this.synchronises
        super().__init__(name=f"{type(self).__name__}({this})")


class BorrowedComm(Borrowed):
    """A communicator that the caller holds."""


class BorrowedRegion(Borrowed):
    """A region that the caller holds."""

    def __init__(self, this: Any) -> None:
        self.view, self.memory = this.view, this.memory
        super().__init__(this)
