"""The machine and its software: versions, processor, kernel, shared memory."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import sys
from pathlib import Path

from cobre_kernels.machine import code

import cobre_comm
from cobre_comm.check.backends import SHM_FOLDER
from cobre_comm.errors import BackendError
from cobre_comm.system.cores import usable_cores
from cobre_comm.testing.backend_name import BackendName
from cobre_comm.testing.ranks.surroundings import inherited_environment

DISTRIBUTIONS = ("numba", "llvmlite", "numpy", "mpi4py")


def describe(backends: list[str]) -> dict[str, str]:
    """Return facts about this machine, its software and the MPIs of these backends, by subject."""
    said = {
        "cobre-comm": cobre_comm.__version__,
        "Python": f"{platform.python_version()} ({sys.executable})",
    }
    for name in DISTRIBUTIONS:
        if version := _version(name):
            said[name] = version
    for name in backends:
        parsed = BackendName.parse(name)
        if parsed.is_mpi and not parsed.nodes:
            said[name] = _mpi(parsed)
    said["system"] = f"{platform.system()} {platform.release()} {platform.machine()}"
    said["processor"] = f"{processor()}, {usable_cores()} usable cores"
    said["kernels"] = code.description()
    if SHM_FOLDER.is_dir():
        usage = shutil.disk_usage(SHM_FOLDER)
        said[str(SHM_FOLDER)] = f"{_size(usage.total)}, {_size(usage.free)} free"
    return said


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _mpi(name: BackendName) -> str:
    from cobre_comm.processes.mpi.probe import find_library

    try:
        return str(find_library({**inherited_environment(), **name.environment()}))
    except BackendError as error:
        return str(error)


def processor() -> str:
    """Return the name of the processor, as the kernel gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _size(count: int) -> str:
    return f"{count / 2**20:.0f} MiB" if count < 2**30 else f"{count / 2**30:.1f} GiB"
