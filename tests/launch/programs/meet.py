"""All ranks meet, unless one of them at once ends in some WAY, while the others wait for it."""

import os
import signal
import sys

from cobre_comm import create_communicator

way, actor, *at_once = sys.argv[1:]
comm = create_communicator()
if not at_once:
    comm.barrier()
if comm.rank == int(actor):
    if way == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if way == "exit":
        sys.exit(3)
    raise ValueError("the first cause")
comm.barrier()
