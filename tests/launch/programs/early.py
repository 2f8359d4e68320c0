"""Rank 1 dies before it has attached, while rank 0 waits for it."""

import os
import signal
import time

from cobre_comm import create_communicator

if os.environ["COBRE_SHM_RANK"] == "1":
    time.sleep(0.7)
    os.kill(os.getpid(), signal.SIGKILL)
create_communicator()
