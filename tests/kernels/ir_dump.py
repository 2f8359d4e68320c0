"""Compile kernels and some of their parts afresh, and write their optimised LLVM IR to files.

    python -m tests.kernels.ir_dump FOLDER quick|mpi

``mpi`` are the collectives over MPI, which take long; ``quick`` is all the rest.

What numba's disk cache returns has no IR, so nothing here is cached. It is a program of its own
because compiled MPI kernels want addresses for MPI's functions, and the ones given here must not be
left behind in a process that may use MPI.
"""

import ctypes
import importlib
import pathlib
import sys

from cobre_kernels import access, fold, guard, wait
from cobre_kernels.mpi import calls, farewell, shared
from cobre_kernels.mpi import round as mpi_round
from cobre_kernels.shm import step
from numba import njit, types

FILES = {
    "barrier": "synchronise_kernel",
    "broadcast": "broadcast_kernel",
    "allreduce": "allreduce_kernel",
    "allgatherv": "allgatherv_kernel",
}
# Functions in which every shared word is touched, each with how many integers it takes.
PARTS = {
    "publish": (step.publish, 5),
    "await_rank": (step.await_rank, 5),
    "record_calls": (step.record_calls, 1),
    "announce": (step.announce, 2),
    "has_arrived": (wait.has_arrived, 3),
    "sleep": (wait._sleep, 4),
    "why_missing": (wait._why_missing, 3),
    "enter": (guard.enter, 1),
    "usability": (guard.usability, 1),
    "leave": (guard.leave, 1),
    "leave_broken": (guard.leave_broken, 3),
    "hand_out": (mpi_round._hand_out, 3),
}


def kernels():
    """Return every kernel that touches memory of other processes, by name."""
    found = {
        f"{backend}_{file}": getattr(
            importlib.import_module(f"cobre_kernels.{backend}.{file}"), name
        )
        for backend in ("shm", "mpi")
        for file, name in FILES.items()
    }
    found["fold"] = fold.fold_kernel
    for kernel in shared.KERNELS:
        found[f"mpi_{kernel.function.__name__}"] = kernel
    found["mpi_tell_left"] = farewell.tell_left_kernel
    for name, file in (("access", access), ("guard", guard)):
        for kernel in file.KERNELS:
            found[f"{name}_{kernel.function.__name__}"] = kernel
    return found


def compiled(function, signature):
    """Return the optimised IR of a function, as numba runs it."""
    dispatcher = njit(signature, error_model="numpy")(function)
    return dispatcher.overloads[signature.args].library.get_llvm_str()


def part(function, arguments):
    """Return the optimised IR of a part, as a function of so many integers."""
    plain = getattr(function, "py_func", function)
    # Whatever the part returns; some return nothing.
    dispatcher = njit(error_model="numpy")(plain)
    signature = (types.int64,) * arguments
    dispatcher.compile(signature)
    return dispatcher.overloads[signature].library.get_llvm_str()


def main(folder, which):
    nowhere = ctypes.cast(ctypes.CDLL(None).abort, ctypes.c_void_p).value
    calls.make_known(dict.fromkeys(calls.SIGNATURES, nowhere))
    over_mpi = [f"mpi_{name}" for name in (*FILES, *(k.function.__name__ for k in shared.KERNELS))]
    for name, kernel in kernels().items():
        if (name in over_mpi) != (which == "mpi"):
            continue
        text = compiled(kernel.function, kernel._signature)
        (folder / f"kernel-{name}.ll").write_text(text)
    for name, (function, arguments) in PARTS.items() if which == "quick" else ():
        (folder / f"part-{name}.ll").write_text(part(function, arguments))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2])
