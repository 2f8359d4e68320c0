"""Finds the kernels of a backend by the names of the collectives."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from cobre_kernels.collective.calls import OPERATIONS
from cobre_kernels.collective.entry import ENTRIES
from cobre_kernels.machine.kernel import Kernel
from cobre_kernels.machine.record import View


@dataclass(frozen=True)
class Bodies:
    """The algorithms of one backend."""

    # A package in which the module ``allreduce`` has the kernel ``allreduce_body``, and likewise
    # for each collective; or one module that has the kernels of all collectives.
    home: str
    abandon: Kernel  # tells the other ranks that this rank has failed

    def of(self, operation: int) -> Kernel:
        """Return the body of a collective, by the number of its operation."""
        name = OPERATIONS[operation]
        module = importlib.import_module(self.home)
        if hasattr(module, "__path__"):
            module = importlib.import_module(f"{self.home}.{name}")
        body: Kernel = getattr(module, f"{name}_body")
        return body

    def give_to(self, comm: View) -> None:
        """Write the addresses of these bodies into a communicator's record, for its entries."""
        for operation in ENTRIES:
            comm.collectives[operation].body = self.of(operation).address
        comm.abandon_body = self.abandon.address
