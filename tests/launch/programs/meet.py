"""All ranks meet twice; rank VICTIM, if given, is killed while the other ranks wait for it."""

import os
import signal
import sys

from cobre_comm import create_communicator

comm = create_communicator()
comm.barrier()
if str(comm.rank) in sys.argv[1:]:
    os.kill(os.getpid(), signal.SIGKILL)
comm.barrier()
