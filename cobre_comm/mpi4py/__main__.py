"""The command ``python -m mpi4py program.py``, which users of ``mpiexec`` write.

In mpi4py this command makes all ranks end when the program of one rank raises. Here nobody needs
the command, because the launcher ends the ranks.
"""

import pathlib
import runpy
import sys

from cobre_comm.mpi4py.missing import PAGE

if __name__ == "__main__":
    del sys.argv[0]
    if sys.argv[:1] == ["-m"] and sys.argv[1:]:
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif sys.argv and not sys.argv[0].startswith("-"):
        sys.path[0] = str(pathlib.Path(sys.argv[0]).resolve().parent)
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        usage = "usage: python -m mpi4py program.py | -m module [arguments]"
        sys.exit(f"{usage}; cobre_comm.mpi4py has what {PAGE} lists")
