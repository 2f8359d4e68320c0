"""All ranks meet twice; rank VICTIM, if there is one, is killed while the others wait for it."""

import os
import signal
import sys

from cobre_comm import create_communicator

comm = create_communicator()
comm.barrier()
if str(comm.rank) in sys.argv[1:]:
    os.kill(os.getpid(), signal.SIGKILL)
comm.barrier()
