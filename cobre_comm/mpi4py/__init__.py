"""The part of mpi4py for programs that send no messages between two ranks.

Its functions use a communicator of cobre_comm. ``docs/howto/mpi4py-programs.md`` lists them, and
mpi4py's documentation describes them.
"""

import sys
from typing import Any, NoReturn

from cobre_comm.mpi4py.missing import Missing, lacking

__version__ = "4.1"  # the documentation of this version of mpi4py applies here


class Rc:
    """The options of mpi4py, with its default values. Setting an option changes nothing here."""

    initialize = threads = fast_reduce = recv_mprobe = True
    thread_level, finalize, irecv_bufsz, errors = "multiple", None, 32768, "exception"

    def __call__(self, **options: Any) -> None:
        for name, value in options.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(type(self), name):
            raise TypeError(f"mpi4py.rc has no option {name!r}")
        object.__setattr__(self, name, value)


rc: Any = Rc()
sys.modules[f"{__name__}.rc"] = rc  # mpi4py does this too
sys.meta_path.append(Missing(__name__))


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(name) if name[0] == "_" else lacking(name)
