"""Compile faulty kernels before each rank would do so: ``python -m planted.warm [FAULT ...]``."""

import sys
import time

from cobre_comm.backends.shm.backend import kernels
from planted.faults import FAULTS
from planted.mutants import faulty_kernel

if __name__ == "__main__":
    for name in sys.argv[1:] or FAULTS:
        began = time.monotonic()
        faulty = [faulty_kernel(FAULTS[name])] if name else []
        for kernel in [*kernels(), *faulty]:
            kernel.address  # noqa: B018  # compiles
        print(f"{time.monotonic() - began:6.2f} s  {name}", flush=True)
