"""The backend: shm, in which one kernel is replaced by a kernel with a fault.

``PLANTED_FAULT`` names the fault. Python and compiled code call the faulty kernel alike, by its
address in the record.
"""

import os

from cobre_comm.backends.shm.backend import ShmBackend
from cobre_comm.config import ShmConfig
from planted.faults import FAULTS
from planted.mutants import faulty_kernel

VARIABLE = "PLANTED_FAULT"  # ranks of a test would not get a variable named COBRE_...
# shm reads the names on the left; the ranks of another distribution's backend get those on the
# right.
TOLD = {
    "COBRE_SHM_NAME": "COBRE_JOB",
    "COBRE_SHM_RANK": "COBRE_RANK",
    "COBRE_SHM_SIZE": "COBRE_SIZE",
}


def _config():
    told = {ours: os.environ[theirs] for ours, theirs in TOLD.items()}
    return ShmConfig.from_env({**os.environ, **told})


class PlantedBackend(ShmBackend):
    """Shared memory with one faulty kernel."""

    def __init__(self):
        name = os.environ.get(VARIABLE)
        fault = FAULTS[name] if name else None
        address = faulty_kernel(fault).address if fault else 0  # made before the ranks meet
        super().__init__(_config())
        if fault:
            fault.plant(self._comm, address)

    @property
    def backend(self):
        """``"planted"``."""
        return "planted"
