"""The MPI that mpi4py loads: whether it is there, and whether it can serve.

Nothing here binds to one implementation: handles have the width that mpi4py was built with, and
functions are found by their names in the library that is loaded.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cobre_comm.backends.announced import announced
from cobre_comm.errors import BackendNotAvailable, InitializationFailed

if TYPE_CHECKING:
    from mpi4py import MPI


def is_importable() -> bool:
    """Whether mpi4py and an MPI library can be loaded; nothing of MPI is initialised by asking.

    mpi4py's extension is loaded as a library, which needs the MPI library, but it is not imported,
    which would initialise MPI.
    """
    if "mpi4py.MPI" in sys.modules:
        return True
    try:
        spec = importlib.util.find_spec("mpi4py.MPI")
        if spec is None or spec.origin is None:
            return False
        ctypes.CDLL(spec.origin)
    except (ImportError, OSError, RuntimeError, ValueError):
        return False
    return True


def usable_parent(comm: MPI.Intracomm | None) -> MPI.Intracomm:
    """Return the communicator to duplicate, after checking that MPI can serve.

    ``mpi4py.MPI`` is imported here, which initialises MPI unless the program has forbidden it.

    Raises
    ------
    BackendNotAvailable
        If mpi4py or an MPI is missing.
    InitializationFailed
        If MPI is not initialised with at least MPI_THREAD_FUNNELED, or has a world of one rank
        where more are announced.
    TypeError
        For anything but an intra-communicator.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise BackendNotAvailable("mpi", ["local", "shm", "tcp"]) from error
    if MPI.Is_finalized():
        raise InitializationFailed("mpi", "MPI has been finalized in this process")
    if not MPI.Is_initialized():
        raise InitializationFailed(
            "mpi",
            "MPI is not initialized and mpi4py.rc.initialize is False; call MPI.Init_thread() "
            "first",
        )
    if MPI.Query_thread() < MPI.THREAD_FUNNELED:
        raise InitializationFailed(
            "mpi",
            "MPI was initialized with MPI_THREAD_SINGLE, at least MPI_THREAD_FUNNELED is needed; "
            "set mpi4py.rc.thread_level = 'funneled' (or more) before MPI is imported",
        )
    if comm is None:
        check_world(MPI.COMM_WORLD)
        return MPI.COMM_WORLD
    if not isinstance(comm, MPI.Intracomm) or comm == MPI.COMM_NULL:
        raise TypeError(f"comm must be an mpi4py intra-communicator, got {comm!r}")
    return comm


@contextlib.contextmanager
def errors_named() -> Iterator[None]:
    """Turn what MPI raises while a communicator is made into ``InitializationFailed``."""
    from mpi4py import MPI

    try:
        yield
    except MPI.Exception as error:
        raise InitializationFailed("mpi", error) from error


def check_world(world: MPI.Intracomm, environ: Mapping[str, str] | None = None) -> None:
    """Refuse to be rank 0 of 1 where a launcher has started more ranks.

    Raises
    ------
    InitializationFailed
        Naming both numbers.
    """
    if world.Get_size() > 1:
        return
    others = announced(os.environ if environ is None else environ)
    if others.size > 1:
        raise InitializationFailed(
            "mpi",
            f"MPI has a world of 1 rank, but {others}: each of them would do all the work. Start "
            "the program with the mpiexec of the MPI that mpi4py uses (`cobre-comm run --backend "
            "mpi` finds it), or with `srun --mpi=pmix` (or pmi2); or set COBRE_COMM_BACKEND to "
            "another backend",
        )


def make_known(*, pretend: bool = False) -> None:
    """Tell the compiler where MPI's functions are, by the names that kernels use.

    Parameters
    ----------
    pretend : bool
        Whether some other address will do, in a process that compiles kernels and runs none.
    """
    from cobre_kernels.mpi import calls

    if pretend:
        calls.make_known(dict.fromkeys(calls.SIGNATURES, _any_function()))
        return
    from mpi4py import MPI

    functions = ctypes.CDLL(MPI.__file__)
    found = {}
    for name in calls.SIGNATURES:
        # The large-count functions came with MPI 4; where they are missing they are not called.
        function = getattr(functions, name, None)
        found[name] = _any_function() if function is None else _address(function)
    calls.make_known(found)


def has_large_counts() -> bool:
    """Whether the library has the functions of MPI 4 whose counts have 64 bits."""
    from mpi4py import MPI

    return hasattr(ctypes.CDLL(MPI.__file__), "MPI_Allgatherv_c")


def _address(function: Any) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


def _any_function() -> int:
    return _address(ctypes.CDLL(None).abort)
