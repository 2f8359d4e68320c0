"""One package per backend; ``SPECS`` is the only list of them.

A backend's modules are imported when one is used; its specification alone is imported here.
"""

from cobre_comm.backends.local.spec import LOCAL
from cobre_comm.backends.mpi.spec import MPI
from cobre_comm.backends.shm.spec import SHM
from cobre_comm.backends.tcp.spec import TCP

SPECS = (LOCAL, SHM, TCP, MPI)  # ``auto`` takes the last that its launcher has announced
BY_NAME = {spec.name: spec for spec in SPECS}
NAMES = tuple(BY_NAME)
