"""Compile the kernels of all backends into an empty cache, as the launcher does before a first job.

    NUMBA_CACHE_DIR=$(mktemp -d) python bench/cold_compile.py

Prints seconds of wall clock and of CPU time by backend, one after the other as they stand here:
what they share is compiled with the first that needs it.
"""

import json
import os
import pathlib
import resource
import time

from cobre_comm import available_backends
from cobre_comm.launcher.warm import warm_up

MARK = "COBRE_BENCH_RESULT "
BACKENDS = ("local", "shm", "tcp", "mpi")


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    cache = pathlib.Path(os.environ["NUMBA_CACHE_DIR"])
    if any(cache.iterdir()):
        raise SystemExit(f"{cache} is not empty")
    taken = {}
    for backend in BACKENDS:
        if backend not in available_backends():
            continue
        used, began = cpu_s(), time.perf_counter()
        warm_up(backend, os.environ)
        taken[backend] = {"wall_s": time.perf_counter() - began, "cpu_s": cpu_s() - used}
        if not [path for path in cache.glob(f"warm-{backend}-*") if path.read_text()]:
            raise SystemExit(f"the kernels of {backend} are not in the cache")
    print(MARK + json.dumps(taken))


if __name__ == "__main__":
    main()
