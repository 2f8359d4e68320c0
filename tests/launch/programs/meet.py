"""All ranks meet; then one of them ends in some way, while the others wait for it."""

import os
import signal
import sys

from cobre_comm import create_communicator

way, actor = sys.argv[1], int(sys.argv[2])
comm = create_communicator()
comm.barrier()
if comm.rank == actor:
    if way == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    raise ValueError("the first cause")
comm.barrier()
