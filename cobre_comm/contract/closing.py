"""Objects that are closed at the end of a ``with`` block."""

from __future__ import annotations

import abc
from typing import ClassVar, Self


class Closing(abc.ABC):
    """A context manager that calls its own :meth:`close`."""

    __slots__ = ()
    _made_by: ClassVar[str]  # set by an abstract class: the call that makes such an object

    def __new__(cls, *given: object, **named: object) -> Self:
        """Make an object; for an abstract class raise an error that names the call to write."""
        if "_made_by" in vars(cls):
            raise TypeError(f"{cls.__name__}() makes none: call {vars(cls)['_made_by']}")
        return super().__new__(cls)

    @abc.abstractmethod
    def close(self) -> None:
        """Release all resources; idempotent."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
