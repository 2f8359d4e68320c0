"""Pickling between a program and its workers.

pickle sends functions and classes by name, and a new process imports them. Some functions cannot be
imported: those of a notebook, lambdas, and functions within functions. If cloudpickle is installed,
it sends such a function by value.
"""

from __future__ import annotations

import importlib.util
import io
import os
import sys
from collections import ChainMap
from multiprocessing.reduction import ForkingPickler
from typing import Any, ClassVar


def dumps(value: object) -> bytes:
    """Return ``value`` pickled, for a process of this program; raises what pickle raises."""
    if main_is_file() or not can_send_by_value():
        try:
            return bytes(ForkingPickler.dumps(value))
        except Exception:  # PicklingError, AttributeError, TypeError; a __reduce__ raises anything
            if not can_send_by_value():
                raise
    return _by_value(value)


def main_is_file() -> bool:
    """Whether a new process can import the definitions of this program's main module."""
    main = sys.modules["__main__"]
    if getattr(main, "__spec__", None) is not None:  # python -m
        return True
    return os.path.isfile(getattr(main, "__file__", None) or "")  # noqa: PTH113  # "" is no path


def can_send_by_value() -> bool:
    """Whether cloudpickle is installed."""
    return importlib.util.find_spec("cloudpickle") is not None


def _by_value(value: object) -> bytes:
    import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # without cloudpickle it is Any
        """Sends queues and connections too, like multiprocessing."""

        dispatch_table: ClassVar[Any] = ChainMap(
            ForkingPickler._extra_reducers,  # type: ignore[attr-defined]
            cloudpickle.Pickler.dispatch_table,
        )

    buffer = io.BytesIO()
    Pickler(buffer).dump(value)
    return buffer.getvalue()
