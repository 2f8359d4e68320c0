"""Rank 0 repeats the lines of its stdin until one is "end"; rank 1 sleeps until then.

Each rank writes its pid to a file, because the read stops a job that is in the background, and then
what ranks have printed may not be shown. Rank 0 begins to read when both files are there.
"""

import os
import pathlib
import sys
import time

VARIABLES = "COBRE_SHM_RANK", "PMI_RANK", "PMIX_RANK"
rank = int(next(filter(None, map(os.environ.get, VARIABLES))))
over = pathlib.Path(sys.argv[1])
draft = over.with_name(f"draft-{rank}")
draft.write_text(str(os.getpid()))
draft.rename(over.with_name(f"ready-{rank}"))
while not all(over.with_name(f"ready-{each}").exists() for each in (0, 1)):
    time.sleep(0.02)
if rank == 0 and sys.argv[2:] != ["sleep"]:
    while (line := sys.stdin.readline().strip()) != "end":
        print("got", line, flush=True)
    over.touch()
while not over.exists():
    time.sleep(0.02)
