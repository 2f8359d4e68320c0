"""One package per backend; ``SPECS`` is the only list of them.

Only the specifications of backends are imported here; the other modules of a backend are imported
when that backend is used.
"""

from cobre_comm.backends.local.spec import LOCAL
from cobre_comm.backends.mpi.spec import MPI
from cobre_comm.backends.shm.spec import SHM
from cobre_comm.backends.tcp.spec import TCP

SPECS = (LOCAL, SHM, TCP, MPI)  # of several announced backends, ``auto`` takes the last
BY_NAME = {spec.name: spec for spec in SPECS}
NAMES = tuple(BY_NAME)
