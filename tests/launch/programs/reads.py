"""Rank 0 repeats the lines of its stdin until one is "end"; other ranks sleep so long."""

import os
import pathlib
import sys
import time

rank, over = int(os.environ["COBRE_SHM_RANK"]), pathlib.Path(sys.argv[1])
print(f"ready {rank} {os.getpid()}.", flush=True)
if rank == 0 and sys.argv[2:] != ["sleep"]:
    while (line := sys.stdin.readline().strip()) != "end":
        print("got", line, flush=True)
    over.touch()
while not over.exists():
    time.sleep(0.02)
