"""The names of mpi4py that this package lacks: the use of each raises an error.

A program may import names under ``except ImportError``, and continue without them. In this case
each rank does the whole work alone. So an error that an import may hide is also written to stderr.
"""

from __future__ import annotations

import opcode
import sys

from cobre_comm.arguments.other_names import SAID
from cobre_comm.reports import seat
from cobre_comm.system.streams import write_error

PAGE = "docs/howto/mpi4py-programs.md"
_said: set[str] = set()


class NotHere(NotImplementedError, AttributeError):
    """A name that this package lacks. It is an ``AttributeError`` too, for ``hasattr``."""

    def __init__(self, name: str, said: str = "") -> None:
        told = SAID.get(name.rpartition(".")[2], "has no counterpart here: keep mpi4py for it")
        said = said or told
        super().__init__(f"{name} of mpi4py {said}; cobre_comm.mpi4py has what {PAGE} lists")


def lacking(name: str) -> NotHere:
    """Return the error about a name that a module's ``__getattr__`` was asked for.

    If an import asks, Python raises an ``ImportError`` with its own words instead of this error. So
    the words of this error are written to stderr too.
    """
    error, asks = NotHere(name), sys._getframe(2)
    if asks.f_code.co_code[asks.f_lasti] == opcode.opmap["IMPORT_FROM"]:
        _say(error)
    return error


class Missing:
    """A finder of modules that raises for each module that a package lacks."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        package, _, module = name.rpartition(".")
        if package == self.package and module != "__main__" and name not in sys.modules:
            error = NotHere(module)
            _say(error)
            # `from mpi4py import module` would hide an error that has the module's full name.
            raise ModuleNotFoundError(str(error), name=f"mpi4py.{module}")


def _say(error: NotHere) -> None:
    """Write the words of an error to stderr once, on rank 0, or in a process that is no rank."""
    if str(error) not in _said and seat.rank_here() in (None, 0):
        write_error(f"cobre-comm: {error}")
    _said.add(str(error))
