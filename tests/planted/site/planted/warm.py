"""Compile faulty kernels before ranks need them: ``python -m planted.warm [FAULT ...]``."""

import sys
import time

from planted.faults import FAULTS
from planted.mutants import faulty_kernel

if __name__ == "__main__":
    for name in sys.argv[1:] or FAULTS:
        began = time.monotonic()
        if name:
            faulty_kernel(FAULTS[name]).address  # noqa: B018  # compiles
        print(f"{time.monotonic() - began:6.2f} s  {name}", flush=True)
