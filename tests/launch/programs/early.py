"""Rank 1 dies before it has attached, while rank 0 waits for it."""

import os
import signal
import time

from cobre_comm import create_communicator

if "1" in (os.environ.get("COBRE_SHM_RANK"), os.environ.get("COBRE_TCP_RANK")):
    time.sleep(0.7)
    os.kill(os.getpid(), signal.SIGKILL)
create_communicator()
