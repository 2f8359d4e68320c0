"""A rank has children whose parent has ended, and tells whether process 1 has reaped them."""

import os
import time
from pathlib import Path

ORPHANS = 3


def zombies():
    """Return the orphans that are not reaped; process 1 is their parent."""
    states = (
        path.read_text().rpartition(")")[2].split() for path in Path("/proc").glob("[0-9]*/stat")
    )
    return [fields for fields in states if fields[:2] == ["Z", "1"]]


for _ in range(ORPHANS):
    if (child := os.fork()) == 0:
        if os.fork() == 0:
            time.sleep(0.1)
        os._exit(0)
    os.waitpid(child, 0)
time.sleep(0.5)
deadline = time.monotonic() + 20
while zombies() and time.monotonic() < deadline:
    time.sleep(0.05)
print(f"{len(zombies())} zombies below process {os.getppid()}", flush=True)
if (child := os.fork()) == 0:  # one stays, in a session of its own
    os.setsid()
    os.execlp("sleep", "sleep", "1000")
