"""Rank 1 closes its communicator and ends late, with code 3, in some WAY; others wait for it."""

import atexit
import sys
import time

from cobre_comm import CollectiveFailed, create_communicator

way = sys.argv[1]
comm = create_communicator()
if comm.rank == 1:
    atexit.register(time.sleep, 1.0)
    if way == "raise":
        sys.excepthook = lambda *_: sys.exit(3)
        comm.close()
        raise RuntimeError("the first cause")
    comm.close()
    sys.exit(3)
try:
    comm.barrier()
except CollectiveFailed:
    if way == "caught":
        sys.exit(1)
    raise
