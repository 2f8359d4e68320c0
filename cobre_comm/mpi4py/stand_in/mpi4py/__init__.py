"""The module that ``import mpi4py`` finds in a job of ``cobre-comm run --as-mpi4py``.

``run/command.py`` puts the parent folder of this folder first on the path of the ranks.
"""

import sys

import cobre_comm.mpi4py.MPI
from cobre_comm.mpi4py.missing import Missing

known = {"": cobre_comm.mpi4py, ".MPI": cobre_comm.mpi4py.MPI, ".rc": cobre_comm.mpi4py.rc}
sys.modules |= {f"{__name__}{name}": module for name, module in known.items()}
sys.meta_path.insert(0, Missing(__name__))  # first, so that mpi4py.x is never our module x
