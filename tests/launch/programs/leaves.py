"""Each rank makes shared memory NAME-PID, starts a process by METHOD, and then ends by WAY.

The process holds a pipe of Python's resource tracker. When no process holds this pipe any more, the
tracker removes the memory.
"""

import multiprocessing
import os
import signal
import sys
import time
from multiprocessing.shared_memory import SharedMemory


def leave(comm, name, method, way):
    memory = SharedMemory(create=True, size=1000, name=f"{name}-{os.getpid()}")
    if method == "fork":  # with this handler the process survives SIGTERM, and so does its rank
        signal.signal(signal.SIGTERM, lambda number, frame: None)
    context = multiprocessing.get_context(method)
    process = context.Process(target=time.sleep, args=(60,))
    process.start()
    rank = os.environ.get("COBRE_SHM_RANK", "0")
    print(f"ready {rank} {os.getpid()} {process.pid}", flush=True)
    if way == "exit":
        os._exit(3)
    time.sleep(60)
    memory.close()


if __name__ == "__main__":
    if sys.argv[1] == "launch":
        from cobre_comm import launch

        launch(leave, 2, args=tuple(sys.argv[2:]))
    else:
        leave(None, *sys.argv[2:])
