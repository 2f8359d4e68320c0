"""Compile faulty kernels before R ranks each would: ``python -m planted.warm [FAULT ...]``."""

import sys
import time

from planted.backend import kernels_with
from planted.faults import FAULTS

if __name__ == "__main__":
    for name in sys.argv[1:] or FAULTS:
        began = time.monotonic()
        for kernel in kernels_with(name).in_order():
            kernel.address  # noqa: B018  # compiles
        print(f"{time.monotonic() - began:6.2f} s  {name}", flush=True)
