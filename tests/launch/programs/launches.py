"""Programs that call ``launch`` in some WAY."""

import sys

from cobre_comm import launch
from tests.launch.workers.bodies import add, sleeper, until_asked

if sys.argv[1] == "unguarded":
    launch(add, 2, args=(1,))
elif __name__ == "__main__":
    ready = {}

    def on_progress(rank, payload):
        if isinstance(payload, int):
            ready.setdefault(rank, []).append(payload)
            if len(ready[rank]) == 2:
                print("ready", rank, *ready[rank], flush=True)
        else:
            print(payload, rank, flush=True)

    if sys.argv[1] == "ask":
        print(launch(until_asked, 2, on_progress=on_progress).values)
    else:
        launch(sleeper, 2, on_progress=on_progress)
