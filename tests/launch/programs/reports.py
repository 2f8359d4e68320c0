"""Rank 0 reports bounds for a while, in a phase; then the other ranks have to wait for rank 1."""

import os
import time

from cobre_comm import create_communicator, report_progress

REPORTS = 5

comm = create_communicator()
with comm.phase("training"):
    for step in range(1, REPORTS + 1):
        if comm.rank == 0:
            report_progress({"lower bound": 70 - 1 / step, "upper bound": 71 + 1 / step})
        comm.barrier()
    print(f"ready {comm.rank} {os.getpid()}", flush=True)
    if comm.rank == 1:
        time.sleep(200)
    comm.barrier()
