"""The backend: shm, with the one kernel replaced that ``PLANTED_FAULT`` names.

The fault is in the kernel that Python and compiled code call alike.
"""

import dataclasses
import os

from cobre_kernels import layout
from cobre_kernels.atomics import WORD_BYTES

from cobre_comm.backends.shm import ShmBackend
from cobre_comm.backends.shm.backend import KERNELS
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


def kernels_with(fault):
    """Return shared memory's kernels with the fault in one of them."""
    if not fault:
        return KERNELS
    kernel = faulty_kernel(FAULTS[fault])
    return dataclasses.replace(KERNELS, **{FAULTS[fault].field: kernel})


def _config():
    told = {ours: os.environ[theirs] for ours, theirs in TOLD.items()}
    return ShmConfig.from_env({**os.environ, **told})


class PlantedBackend(ShmBackend):
    """R processes on one machine, one of whose kernels is wrong."""

    def __init__(self):
        kernels = kernels_with(os.environ.get(VARIABLE, ""))
        super().__init__(_config())
        self._kernels = kernels
        for number, kernel in enumerate(kernels.in_order()):
            self._set(layout.KERNELS + number * WORD_BYTES, kernel.address)

    @property
    def backend(self):
        """``"planted"``."""
        return "planted"
