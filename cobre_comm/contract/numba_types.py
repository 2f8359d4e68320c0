"""Makes the numba types of our objects and functions when numba needs them, and not before.

numba asks an object for its type by the attribute ``_numba_type_``. numba knows our functions after
the module ``cobre_comm.jit.register``, which imports numba, has been imported. If a program imports
numba after this package, numba calls :func:`init` by the entry point ``numba_extensions`` before it
compiles, and ``init`` imports that module. If a program imports numba first, that module is
imported together with a module that has functions of ours, such as ``clock.py``, or when numba asks
for a type.
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
    if this version of numba is not supported.

    When a compiled function is called, numba first asks whether the object has the attribute, and
    ignores any exception, even one that a signal handler raises. Then numba asks a second time, and
    this class raises the ignored exception again.
    """

    _raised = threading.local()  # ``error``: the exception that this thread's last question raised

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner = owner

    def __get__(self, value: object, cls: type) -> Any:
        """Make the type, and return it."""
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
    """Tell whether C code has dropped an error, so that no Python caller is in its traceback."""
    first = error.__traceback__
    return first is not None and first.tb_frame.f_code is LateType.__get__.__code__


def init() -> None:
    """Register our types and functions if the program uses us; numba calls this once, early.

    If the version of numba is not supported, the error comes at the first use of our objects.
    """
    if "cobre_comm" in sys.modules:
        register()


def register() -> None:
    """Register our objects and functions, if numba is imported, and its version is supported."""
    if "numba" in sys.modules:
        with contextlib.suppress(ImportError):
            importlib.import_module("cobre_comm.jit.register")
