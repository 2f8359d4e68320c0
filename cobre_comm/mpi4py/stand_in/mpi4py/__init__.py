"""What ``import mpi4py`` finds in a job of ``cobre-comm run --as-mpi4py``.

``run/command.py`` puts the folder above this one first on the path of the ranks.
"""

import sys

import cobre_comm.mpi4py.MPI

sys.modules |= {__name__: cobre_comm.mpi4py, f"{__name__}.MPI": cobre_comm.mpi4py.MPI}
