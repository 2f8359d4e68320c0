"""Objects that are closed at the end of a ``with`` block."""

from __future__ import annotations

import abc
from typing import Self


class Closing(abc.ABC):
    """A context manager that calls its own :meth:`close`."""

    __slots__ = ()

    @abc.abstractmethod
    def close(self) -> None:
        """Release all resources; idempotent."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
