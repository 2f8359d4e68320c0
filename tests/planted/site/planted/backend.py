"""The backend: shm with one kernel replaced by that with the fault that ``PLANTED_FAULT`` names.

The fault is in a kernel that Python and compiled code call alike, by its address in the record.
"""

import os

from cobre_comm.backends.shm.backend import ShmBackend
from cobre_comm.config import ShmConfig
from planted.faults import FAULTS
from planted.mutants import faulty_kernel

VARIABLE = "PLANTED_FAULT"  # COBRE_... would not reach the ranks of a test
# What the ranks of another distribution's backend are told, under the names that shm reads.
TOLD = {
    "COBRE_SHM_NAME": "COBRE_JOB",
    "COBRE_SHM_RANK": "COBRE_RANK",
    "COBRE_SHM_SIZE": "COBRE_SIZE",
}


def _config():
    told = {ours: os.environ[theirs] for ours, theirs in TOLD.items()}
    return ShmConfig.from_env({**os.environ, **told})


class PlantedBackend(ShmBackend):
    """Shared memory with one wrong kernel."""

    def __init__(self):
        name = os.environ.get(VARIABLE)
        fault = FAULTS[name] if name else None
        address = faulty_kernel(fault).address if fault else 0  # before the ranks meet
        super().__init__(_config())
        if fault:
            fault.plant(self._comm, address)

    @property
    def backend(self):
        """``"planted"``."""
        return "planted"
