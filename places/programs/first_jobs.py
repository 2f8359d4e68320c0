"""Run two jobs of 4 ranks on a system where no job has run before.

``first_jobs.py BACKEND`` prints a line of JSON: the seconds of the first and of the second job, by
the clock and of CPU time; what both jobs wrote to stderr; and the files that are new or changed
afterwards.
"""

import contextlib
import json
import os
import pathlib
import resource
import subprocess
import sys
import time

PROGRAM = pathlib.Path(__file__).with_name("allreduce.py")
NOT_FILES = "/proc", "/sys"


def job(backend):
    """Run a job; return seconds by the clock, seconds of CPU time, and what it wrote to stderr."""
    words = "cobre-comm", "run", "--no-prefix", "-n", "4", "--backend", backend, PROGRAM
    began, used = time.monotonic(), cpu_s()
    done = subprocess.run(
        words, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    took = time.monotonic() - began, cpu_s() - used
    if done.returncode != 0 or done.stdout.splitlines() != [f"{backend} 10.0"] * 4:
        sys.exit(f"{done.returncode}: {done.stdout} {done.stderr}")
    return *took, done.stderr


def cpu_s():
    """Return the CPU time of all processes for which this process has waited."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def files():
    """Return each file that this user sees, and when the file was last changed."""
    found = set()
    for folder, below, names in os.walk("/"):
        below[:] = [name for name in below if str(pathlib.Path(folder, name)) not in NOT_FILES]
        for path in (pathlib.Path(folder, name) for name in names):
            with contextlib.suppress(OSError):
                if not path.is_char_device():
                    found.add((str(path), path.lstat().st_mtime_ns))
    return found


before = files()
jobs = [job(sys.argv[1]) for _ in range(2)]
told = {
    "seconds": [seconds for seconds, _, _ in jobs],
    "cpu": [used for _, used, _ in jobs],
    "stderr": "".join(said for _, _, said in jobs),
    "written": sorted({path for path, _ in files() - before}),
}
print(json.dumps(told))
