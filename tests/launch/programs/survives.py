"""Ranks meet again and again until one is lost; then the others end normally. Rank ACTOR raises."""

import os
import sys

from cobre_comm import CollectiveFailed, create_communicator

actors = [int(word) for word in sys.argv[1:]]
comm = create_communicator()
comm.barrier()
print(f"ready {comm.rank} {os.getpid()}")
if comm.rank in actors:
    raise ValueError("the first cause")
try:
    while True:
        comm.barrier()
except CollectiveFailed as error:
    print(f"goes on without {error.ranks}")
