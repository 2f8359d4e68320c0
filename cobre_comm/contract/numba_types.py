"""The numba types of our objects and functions are made when numba meets them, and no sooner.

numba asks an object for its type by the attribute ``_numba_type_``. It knows our functions once
``cobre_comm.jit.register`` has registered them, a module that imports numba. If a program imports
numba after this package, numba imports that module before it compiles, through the entry point
``numba_extensions``. Otherwise a module of this package imports it.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
from typing import Any


class LateType:
    """The attribute ``_numba_type_`` of a class, until numba asks for it.

    The type is the one that ``cobre_comm.jit.register`` has for ``kind``. ``ImportError`` is raised
    if this numba does not fit.

    A call of a compiled function first asks whether there is such an attribute, and drops whatever
    is raised, also by a signal handler. Then numba asks again, and gets what was dropped.
    """

    _raised = threading.local()  # its ``error`` is what the last ask of this thread has raised

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner = owner

    def __get__(self, value: object, cls: type) -> Any:
        """Have the type made, and return it."""
        if value is None:
            raise AttributeError("an object has it, and no class")
        last = self._raised.__dict__.pop("error", None)
        if last is not None and _was_dropped(last):
            raise last
        try:
            register = importlib.import_module("cobre_comm.jit.register")
            return register.give_type(self._kind, self._owner, value)
        except BaseException as error:
            self._raised.error = error
            raise


def _was_dropped(error: BaseException) -> bool:
    """Tell whether no Python code has caught an error: its traceback would begin there."""
    first = error.__traceback__
    return first is not None and first.tb_frame.f_code is LateType.__get__.__code__


def init() -> None:
    """Register what this program has imported of ours; numba calls this once, before it compiles.

    A numba that does not fit is an error at the first use of an object of ours.
    """
    if "cobre_comm" in sys.modules:
        register()


def register() -> None:
    """Let numba know our objects and functions, if it is there and fits."""
    if "numba" in sys.modules:
        with contextlib.suppress(ImportError):
            importlib.import_module("cobre_comm.jit.register")
