"""Objects that are closed at the end of a ``with`` block."""

from __future__ import annotations

import abc
from typing import ClassVar, Self

from cobre_comm import old_names


class Closing(abc.ABC):
    """A context manager that calls its own :meth:`close`."""

    __slots__ = ()
    _made_by: ClassVar[str]  # set by an abstract class: the call that makes such an object
    _holder: ClassVar[str] = ""  # the variable that holds such an object in tables and messages

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        old_names.keep(cls, cls._holder)

    def __new__(cls, *given: object, **named: object) -> Self:
        """Make an object; for an abstract class raise an error that names the call to write."""
        if "_made_by" in vars(cls):
            raise TypeError(f"{cls.__name__}() makes none: call {vars(cls)['_made_by']}")
        return super().__new__(cls)

    @abc.abstractmethod
    def close(self) -> None:
        """Release all resources; idempotent."""

    def __dir__(self) -> list[str]:
        old = old_names.OLD_NAMES.get(self._holder, ())
        return [name for name in super().__dir__() if name not in old]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
