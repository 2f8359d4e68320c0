"""The MPI that mpi4py loads: whether it is there, and whether it can be used.

Nothing here is specific to one MPI: handles have the width that mpi4py was built with, and
functions are found by their names in the loaded library.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import site
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre_comm.backends.announced import announced
from cobre_comm.errors import BackendNotAvailable, InitializationFailed

if TYPE_CHECKING:
    from mpi4py import MPI


# For each ABI, the library file that mpi4py's extension asks the loader of Linux for.
FILES = {"mpich": "libmpi.so.12", "impi": "libmpi.so.12", "openmpi": "libmpi.so.40"}


def version() -> str:
    """Return name and version of the MPI library that is loaded."""
    from mpi4py import MPI

    first = str(MPI.Get_library_version()).strip("\0\n ").splitlines()[0].split(",")[0]
    return " ".join(first.split())


def why_not() -> str:
    """Return the reason why mpi4py cannot load an MPI library, or an empty string.

    This initialises nothing of MPI.
    """
    try:
        _load()
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        return _reason(error)
    return ""


def _reason(error: Exception) -> str:
    return f"mpi4py or its MPI library cannot be loaded ({'; '.join(str(error).splitlines())})"


def _load() -> None:
    """Load mpi4py's extension, which loads the MPI library, but do not initialise MPI.

    mpi4py finds a library that a wheel has installed beside the interpreter. But if MPI4PY_MPIABI
    chooses among several libraries, mpi4py leaves the search to the loader, which does not look
    there.
    """
    loaded = sys.modules.get("mpi4py.MPI")
    if loaded is not None and loaded.__name__ == "mpi4py.MPI":
        return
    if loaded is not None:
        raise ImportError("cobre_comm.mpi4py stands in for it: --as-mpi4py")
    spec = importlib.util.find_spec("mpi4py.MPI")
    if spec is None or spec.origin is None:
        raise ImportError("mpi4py has no extension for this MPI; see MPI4PY_MPIABI")
    try:
        ctypes.CDLL(spec.origin)
    except OSError:
        if not _load_beside_interpreter(os.environ.get("MPI4PY_MPIABI", "")):
            raise
        ctypes.CDLL(spec.origin)


def _load_beside_interpreter(abi: str) -> bool:
    """Load the MPI library of a wheel, so that mpi4py's extension finds it; return whether done."""
    users = [site.USER_BASE] if site.ENABLE_USER_SITE and site.USER_BASE else []
    for prefix in (sys.prefix, *users, sys.base_prefix):
        with contextlib.suppress(KeyError, OSError):
            ctypes.CDLL(str(Path(prefix, "lib", FILES[abi])))
            return True
    return False


def usable_parent(comm: MPI.Intracomm | None) -> MPI.Intracomm:
    """Return the communicator to duplicate, after checking that MPI can serve.

    ``mpi4py.MPI`` is imported here, which initialises MPI unless the program has forbidden it.

    ``InitializationFailed`` is raised if MPI is not initialised, if this thread may not call MPI,
    or if MPI's world has one rank although a launcher announces more. Without mpi4py or an MPI,
    ``BackendNotAvailable`` is raised; for anything but an intra-communicator, ``TypeError``.
    """
    try:
        _load()
        from mpi4py import MPI
    except (ImportError, OSError, RuntimeError) as error:
        raise BackendNotAvailable("mpi", ["local", "shm", "tcp"], _reason(error)) from error
    if MPI.Is_finalized():
        raise InitializationFailed("mpi", "MPI has been finalized in this process")
    if not MPI.Is_initialized():
        raise InitializationFailed(
            "mpi",
            "MPI is not initialized and mpi4py.rc.initialize is False; call MPI.Init_thread() "
            "first",
        )
    _check_thread()
    if comm is None:
        check_world(MPI.COMM_WORLD)
        return MPI.COMM_WORLD
    if not isinstance(comm, MPI.Intracomm) or comm == MPI.COMM_NULL:
        raise TypeError(f"comm must be an mpi4py intra-communicator, got {comm!r}")
    return comm


def _check_thread() -> None:
    """Refuse a thread that may not call MPI."""
    from mpi4py import MPI

    level = MPI.Query_thread()
    if level < MPI.THREAD_FUNNELED:
        raise InitializationFailed(
            "mpi",
            "MPI was initialized with MPI_THREAD_SINGLE, at least MPI_THREAD_FUNNELED is needed; "
            "set mpi4py.rc.thread_level = 'funneled' (or more) before MPI is imported",
        )
    if level == MPI.THREAD_FUNNELED and not MPI.Is_thread_main():
        raise InitializationFailed(
            "mpi",
            "MPI was initialized with MPI_THREAD_FUNNELED, so only the thread that initialized it "
            "may call it; create and use communicators there, or set mpi4py.rc.thread_level = "
            "'multiple' before MPI is imported",
        )


@contextlib.contextmanager
def errors_named() -> Iterator[None]:
    """Turn MPI's exceptions into ``InitializationFailed`` while a communicator is made."""
    from mpi4py import MPI

    try:
        yield
    except MPI.Exception as error:
        raise InitializationFailed("mpi", error) from error


def check_world(world: MPI.Intracomm, environ: Mapping[str, str] | None = None) -> None:
    """Refuse to be rank 0 of 1 if a launcher has started more ranks.

    The ``InitializationFailed`` names both numbers of ranks.
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


def functions() -> list[int]:
    """Return the addresses of MPI's functions, in the order of the kernels' table.

    The functions for large counts are new in MPI 4; if the library lacks them, no kernel calls
    them.
    """
    from cobre_kernels.mpi.calls import SIGNATURES
    from mpi4py import MPI

    library = ctypes.CDLL(MPI.__file__)
    found: list[Any] = [getattr(library, name, None) for name in SIGNATURES]
    return [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in found]


def has_large_counts() -> bool:
    """Whether the library has the functions of MPI 4 with counts of 64 bits."""
    from mpi4py import MPI

    return hasattr(ctypes.CDLL(MPI.__file__), "MPI_Iallgatherv_c")
