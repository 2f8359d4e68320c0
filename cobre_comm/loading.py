"""Kernels that few programs need: compiled, or found in numba's cache, on first use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from cobre_kernels.collective import entry
from cobre_kernels.collective.calls import ALLREDUCE
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.reduction import fold
from cobre_kernels.machine.compiling.progress import progress
from cobre_kernels.machine.kernel import Kernel
from cobre_kernels.machine.record import View

_bodies: list[Kernel] = []  # of gatherv


def number_of(body: Kernel) -> int:
    """Return the number by which a communicator's record names a body that is loaded later."""
    if body not in _bodies:
        _bodies.append(body)
    return _bodies.index(body)


def load(address: int, operation: int) -> None:
    """Give a communicator the kernels that a collective misses, unless it has them.

    Parameters
    ----------
    address : int
        Address of its record.
    operation : int
        ALLREDUCE for the fold of PROD, LAND and LOR; GATHERV.
    """
    comm = COMM.at(address)
    if operation == ALLREDUCE and not comm.rare_fold_kernel:
        with _shown(comm):
            comm.rare_fold_kernel = fold.rare_fold_kernel.address
    elif operation != ALLREDUCE and not comm.gatherv:
        with _shown(comm):
            comm.gatherv_body = comm.gatherv_body or _bodies[comm.gatherv_number].address
            comm.gatherv = entry.gatherv_entry.address


@contextlib.contextmanager
def _shown(comm: View) -> Iterator[None]:
    with progress() if comm.rank == 0 else contextlib.nullcontext():
        yield
