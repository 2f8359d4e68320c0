"""Launch ranks in the workers of an executor; print the results of all launches as JSON.

``on_executor.py pool|loky|dask SIZE CASE`` starts its own workers; ``on_executor.py tcp://...``
uses the workers of a running Dask.
"""

import concurrent.futures
import json
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from cobre_comm import WorkerError, launch

EXAMPLE = Path(__file__).parents[2] / "examples" / "sddp"


def meets(comm):
    """Return the sum of all ranks, this process id, and the number of ranks on this node."""
    with comm.split_local() as node:
        return comm.sum(comm.rank), os.getpid(), node.size


def fails(comm):
    """Raise an error on one rank."""
    if comm.rank == 1:
        raise KeyError("no valley")
    comm.barrier()


def dies(comm):
    """Kill one rank, which reports nothing."""
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    comm.barrier()


def goes_on(comm, begun):
    """Call barriers until another process ends the job."""
    comm.barrier()
    Path(begun).touch()
    while True:
        comm.barrier()


def trains(comm, case):
    """Train the example; return the hash of its cuts."""
    sys.path.insert(0, str(EXAMPLE))
    from training.plan import Options
    from training.run import run_case
    from training.share import load_case

    options = Options(20, None, 0, None, None, 10)
    return run_case(load_case(comm, Path(case), []), comm, options).cuts_sha256


def executor(kind, size):
    """Return an executor, or a client of Dask, with ``size`` workers."""
    if kind == "pool":
        return concurrent.futures.ProcessPoolExecutor(size)
    if kind == "loky":
        import loky

        return loky.get_reusable_executor(max_workers=size)
    from dask.distributed import Client, LocalCluster

    if kind != "dask":
        return Client(kind)
    return Client(LocalCluster(n_workers=size, threads_per_worker=1, dashboard_address=None))


def interrupt(begun):
    """Interrupt this program when the file ``begun`` shows that the ranks have begun."""
    while not begun.exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)


def main(kind, size, case):
    """Try all launches on one executor, and print their results."""
    seen = {}

    def attempt(name, *arguments, **options):
        start = time.monotonic()
        try:
            said = launch(*arguments, executor=workers, **options).values
        except (WorkerError, ValueError, KeyboardInterrupt) as error:
            said = f"{type(error).__name__}: {error}"
        seen[name] = said, round(time.monotonic() - start, 2)

    workers = executor(kind, size)
    attempt("first", meets, size)
    attempt("again", meets, size)
    attempt("more", meets, size + 1)
    attempt("fails", fails, size)
    with tempfile.TemporaryDirectory() as folder:
        begun = Path(folder) / "begun"
        threading.Thread(target=interrupt, args=(begun,), daemon=True).start()
        attempt("interrupted", goes_on, size, args=(str(begun),))
    attempt("after", meets, size)
    attempt("sddp", trains, size, args=(case,))
    attempt("dies", dies, size)
    print(json.dumps(seen), flush=True)
    if kind == "dask":
        workers.cluster.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
