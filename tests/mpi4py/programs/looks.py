"""What a rank, and a child of the rank, find under the name mpi4py."""

import contextlib
import importlib
import importlib.util
import subprocess
import sys

import mpi4py
import mpi4py.MPI
import mpi4py.rc
from mpi4py import MPI
from mpi4py.MPI import *  # noqa: F403 as mpi-sppy does

try:
    from mpi4py.MPI import ANY_SOURCE, ANY_TAG
except ImportError:
    ANY_SOURCE = ANY_TAG = -1
# mpi4py has a module `futures`; `windows` is a module of ours alone
for name in ("futures", "windows"):
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module(f"mpi4py.{name}")
assert "mpi4py.windows" not in sys.modules
mpi4py.rc(initialize=False)
assert importlib.util.find_spec("mpi4py.MPI")
assert not hasattr(MPI, "Request")
assert MPI is mpi4py.MPI
assert COMM_WORLD is MPI.COMM_WORLD  # noqa: F405
names = f"mpi4py is {mpi4py.__name__}, MPI is {MPI.__name__}"
if __name__ == "__main__":
    print(f"main rank {MPI.COMM_WORLD.rank} of {MPI.COMM_WORLD.size}, {names}", flush=True)
    child = "import looks; print('a child is rank', *looks.asked)"
    told = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=True)
    print(told.stdout.replace(" of 1 ", " of 1, "), end="")
else:
    asked = [MPI.COMM_WORLD.rank, "of", MPI.COMM_WORLD.size, names]
