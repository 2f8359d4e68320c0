"""Compile the kernels of backends into an empty cache, as `cobre-comm compile` and a first job do.

    NUMBA_CACHE_DIR=$(mktemp -d) python bench/cold_compile.py [local shm tcp mpi]

Prints seconds of wall clock and of CPU time; without names, for all that can be used here.
"""

import json
import os
import pathlib
import resource
import sys
import time

from cobre_comm.compile.command import main as compile_

MARK = "COBRE_BENCH_RESULT "


def main(names: list[str]) -> None:
    cache = pathlib.Path(os.environ["NUMBA_CACHE_DIR"])
    if any(cache.iterdir()):
        raise SystemExit(f"{cache} is not empty")
    began = time.perf_counter()
    if compile_(["--backends", ",".join(names)] if names else []):
        raise SystemExit("the kernels are not in the cache")
    wall_s = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(MARK + json.dumps({"wall_s": wall_s, "cpu_s": used.ru_utime + used.ru_stime}))


if __name__ == "__main__":
    main(sys.argv[1:])
