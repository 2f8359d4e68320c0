"""Ranks meet on and on, until one is lost; then the others go on by WAY.

``apart``: they end without it; ``raise``: they do not catch the error; ``code``: rank 0 exits with
code 5; ``early``: they do not meet. Rank ACTOR, if there is one, is lost by HOW.
"""

import os
import signal
import sys
import time

from cobre_comm import CollectiveFailed, create_communicator

way, actor, how = [*sys.argv[1:], "-1", ""][:3]
comm = create_communicator()
comm.barrier()
print(f"ready {comm.rank} {os.getpid()}")
if comm.rank == int(actor):
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "raise":
        raise ValueError("the first cause\nat length")
    if how == "sleep":
        time.sleep(60)
    if how == "abort":
        comm.abort(7)
    sys.exit(int(how))
try:
    while way != "early":
        comm.barrier()
except CollectiveFailed as error:
    if way == "raise":
        raise
    print(f"goes on without {error.ranks}")
if way == "code" and comm.rank == 0:
    sys.exit(5)
