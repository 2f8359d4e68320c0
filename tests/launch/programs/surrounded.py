"""WAY: ranks end well, or rank 0 fails or is killed. ``launch FILE WAY`` writes the end to FILE."""

import os
import pathlib
import signal
import sys
import time

VARIABLES = ("COBRE_SHM_RANK", "COBRE_TCP_RANK", "PMI_RANK", "PMIX_RANK")


def work(comm, way):
    if way == "well":
        return comm.sum(comm.rank + 1)
    return act(comm.rank, way)


def act(rank, way):
    if rank == 0:
        os.kill(os.getpid(), signal.SIGKILL) if way == "killed" else sys.exit(3)
    time.sleep(60)


def call(file, way):
    from cobre_comm import WorkerError, launch

    try:
        said = f"sums {launch(work, 2, args=(way,)).values}"
    except WorkerError as error:
        said = f"rank {error.rank} ended with {error.exit_code}"
    pathlib.Path(file).write_text(said)


if __name__ == "__main__":
    if sys.argv[1] == "launch":
        call(*sys.argv[2:])
    elif sys.argv[1] == "well":
        from cobre_comm import create_communicator

        with create_communicator() as comm:
            work(comm, "well")
    else:
        act(next(int(os.environ[name]) for name in VARIABLES if name in os.environ), sys.argv[1])
