"""Ranks take short steps together for SECONDS; then each prints how it ended."""

import os
import sys
import time

import numpy as np

from cobre_comm import CommError, create_communicator

SECONDS = float(sys.argv[1])

with create_communicator() as comm:
    with comm.split_local() as node:
        where = f"rank {comm.rank} of {comm.size} on {comm.backend}, {node.rank} of {node.size}"
    print(f"{where} at {os.uname().nodename}", flush=True)
    goes_on = np.ones(1)
    steps, longest_s = 0, 0.0
    before = start = time.monotonic()
    try:
        while goes_on[0] and not comm.stop_requested():
            total = comm.sum(comm.rank + 1)
            assert total == comm.size * (comm.size + 1) // 2
            goes_on[0] = time.monotonic() - start < SECONDS
            comm.broadcast(goes_on)
            steps += 1
            time.sleep(0.02)
            longest_s = max(longest_s, time.monotonic() - before)
            before = time.monotonic()
    except CommError as error:
        print(f"rank {comm.rank} raised {type(error).__name__}: ranks {error.ranks}", flush=True)
        raise
    how = "stopped" if comm.stop_requested() else "ended"
    print(f"rank {comm.rank} {how} after {steps} steps, longest {longest_s:.1f} s", flush=True)
