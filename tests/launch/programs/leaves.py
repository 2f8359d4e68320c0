"""Each rank makes shared memory NAME-PID and a process, which a METHOD starts; then it ends by WAY.

The process holds the pipe of Python's resource tracker, which removes the memory once nobody does.
"""

import multiprocessing
import os
import signal
import sys
import time
from multiprocessing.shared_memory import SharedMemory


def leave(comm, name, method, way):
    memory = SharedMemory(create=True, size=1000, name=f"{name}-{os.getpid()}")
    if method == "fork":  # and the process survives SIGTERM, like its rank
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
