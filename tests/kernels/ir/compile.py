"""Compile kernels and some of their parts afresh, and write their optimised LLVM IR to files.

    python -m tests.kernels.ir.compile FOLDER

What numba's disk cache returns has no IR, so nothing here is cached. It is a program of its own
because it pretends to know MPI's functions, which must not be left behind where MPI may be used.
"""

import pathlib
import sys

from cobre_kernels.collective import guard
from cobre_kernels.collective.comm import COMM
from cobre_kernels.machine.record import Record
from cobre_kernels.machine.record_types import RecordType
from cobre_kernels.shm import step, wait
from numba import njit, types

from cobre_comm.backends.local import backend as local
from cobre_comm.backends.mpi import backend as mpi
from cobre_comm.backends.mpi import library
from cobre_comm.backends.shm import backend as shm

# Routines in which every shared word is touched, and what they take: a record, or numbers.
PARTS = {
    "publish": (step.publish, (COMM, int)),
    "await_rank": (step.await_rank, (COMM, int, int)),
    "record_calls": (step.record_calls, (COMM,)),
    "announce": (step.announce, (COMM, int)),
    "has_arrived": (wait.has_arrived, (COMM, int, int)),
    "sleep": (wait._sleep, (COMM, int, int, int)),
    "why_missing": (wait._why_missing, (COMM, int, int)),
    "acquire": (guard.acquire, (COMM,)),
    "usability": (guard.usability, (COMM,)),
    "release": (guard.release, (COMM,)),
    "release_broken": (guard.release_broken, (COMM, int)),
}

# Kernels whose memory is all their own; a test reads that in their source.
PRIVATE = {"collective/exact_sum.exact_sum_entry"}


def name_of(kernel):
    """Return a kernel's name, as ``shm/barrier.barrier_body``."""
    function = kernel.function
    module = function.__module__.removeprefix("cobre_kernels.").replace(".", "/")
    return f"{module}.{function.__name__}"


def kernels():
    """Return every kernel that is read, by name."""
    found = (*shm.kernels(), *local.BODIES.all(), *mpi.BODIES.all())
    return {name_of(kernel): kernel for kernel in found}


def arguments_of(kernel):
    """Return what a kernel takes: a record, and a call if it takes one."""
    return (kernel.record,) if kernel.call_type is None else (kernel.record, kernel.call_type)


def compiled(function, arguments, result=None):
    """Return the optimised IR of a function, as numba runs it, with the result that it finds.

    An argument is a record, a call or a number.
    """
    signature = tuple(_numba_type(a) for a in arguments)
    plain = getattr(function, "py_func", function)
    dispatcher = njit(error_model="numpy")(plain)
    dispatcher.compile(signature if result is None else result(*signature))
    return dispatcher.overloads[signature].library.get_llvm_str()


def _numba_type(argument):
    if isinstance(argument, Record):
        return RecordType(argument.name)
    if argument is int:
        return types.int64
    return types.NamedUniTuple(types.int64, len(argument._fields), argument)


def path_of(folder, name):
    """Return the file that holds the IR of a kernel or of a part."""
    return folder / f"{name.replace('/', '-')}.ll"


def main(folder):
    library.make_known(pretend=True)
    for name, kernel in kernels().items():
        if name not in PRIVATE:
            text = compiled(kernel.function, arguments_of(kernel), types.int64)
            path_of(folder, name).write_text(text)
    for name, (function, arguments) in PARTS.items():
        path_of(folder, name).write_text(compiled(function, arguments))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
