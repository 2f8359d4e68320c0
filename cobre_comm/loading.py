"""Find the kernels of a backend by the names of collectives, and compile them when needed."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from dataclasses import dataclass

from cobre_kernels.collective.calls import ALLREDUCE, OPERATIONS
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.entry import ENTRIES, RARE_ENTRIES
from cobre_kernels.collective.reduction import fold
from cobre_kernels.machine.compiling.progress import progress
from cobre_kernels.machine.kernel import Kernel
from cobre_kernels.machine.record import View

_used: list[Bodies] = []  # by the number that a communicator's record has


@dataclass(frozen=True)
class Bodies:
    """The algorithms of one backend.

    Parameters
    ----------
    home : str
        A package in which ``allreduce.py`` has the kernel ``allreduce_body``, and so on; or one
        module that has them all.
    abandon : Kernel
        Tells the other ranks that this one has failed.
    helpers : tuple of Kernel
        Other kernels that they need.
    """

    home: str
    abandon: Kernel
    helpers: tuple[Kernel, ...] = ()

    def of(self, operation: int) -> Kernel:
        """Return the body of a collective, by the number of its operation."""
        name = OPERATIONS[operation]
        module = importlib.import_module(self.home)
        if hasattr(module, "__path__"):
            module = importlib.import_module(f"{self.home}.{name}")
        body: Kernel = getattr(module, f"{name}_body")
        return body

    def all(self) -> list[Kernel]:
        """Return the kernels of this backend alone that are compiled before ranks start."""
        return [*self.helpers, *map(self.of, ENTRIES), self.abandon]

    def rare(self) -> list[Kernel]:
        """Return the bodies that are compiled on first use."""
        return [self.of(operation) for operation in RARE_ENTRIES]

    def give_to(self, comm: View) -> None:
        """Let the entries of a communicator run these bodies, given its record."""
        for operation in ENTRIES:
            comm.collectives[operation].body = self.of(operation).address
        comm.abandon_body = self.abandon.address
        if self not in _used:
            _used.append(self)
        comm.bodies = _used.index(self)


def load(address: int, operation: int) -> None:
    """Give a communicator the kernels of a rare collective or fold, unless it has them.

    Parameters
    ----------
    address : int
        Address of its record.
    operation : int
        ALLREDUCE for the fold of operations that few programs need; or one of RARE_ENTRIES.
    """
    comm = COMM.at(address)
    if operation == ALLREDUCE:
        if not comm.rare_fold_kernel:
            with _shown(comm):
                comm.rare_fold_kernel = fold.rare_fold_kernel.address
        return
    kernels = comm.collectives[operation]
    if not kernels.entry:
        with _shown(comm):
            kernels.body = kernels.body or _used[comm.bodies].of(operation).address
            kernels.entry = RARE_ENTRIES[operation].address


@contextlib.contextmanager
def _shown(comm: View) -> Iterator[None]:
    with progress() if comm.rank == 0 else contextlib.nullcontext():
        yield
