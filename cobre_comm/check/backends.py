"""The backends that can run on this machine, and the reasons why others cannot."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from cobre_comm.backends import NAMES
from cobre_comm.check.result import Missing
from cobre_comm.errors import did_you_mean
from cobre_comm.factory import available_backends
from cobre_comm.testing.backend_name import MPI_LIBRARIES, BackendName
from cobre_comm.testing.ranks.surroundings import startable_mpi

SHM_FOLDER = Path("/dev/shm")
# Room for the collective buffers of one job, twice, because a second communicator with small chunks
# exists beside the first; for regions of 2 MB; and as much again for other programs.
SHM_BYTES = 48 * 2**20


class UnknownBackend(ValueError):
    """No backend has this name; the message lists the names that can be given."""


def find_backends(asked: Sequence[str]) -> tuple[list[str], list[Missing]]:
    """Return the backends to check, and the backends that cannot run here.

    If ``asked`` is empty, all backends are checked. ``mpi`` stands for every MPI that can start
    ranks here.
    """
    found: list[str] = []
    missing: list[Missing] = []
    installed = available_backends()
    others = [name for name in installed if name not in NAMES]
    for name in asked or (*NAMES, *others):
        _check_name(name, others)
        names, reason = _expand(name)
        found += [each for each in names if each not in found]
        if reason:
            missing.append(Missing(name, reason, bool(asked)))
    return found, missing


def _check_name(name: str, others: Sequence[str]) -> None:
    try:
        kind = BackendName.parse(name).kind
    except ValueError as error:
        raise UnknownBackend(str(error)) from None
    if kind not in (*NAMES, *others):
        known = [*NAMES, *(f"mpi-{library}" for library in MPI_LIBRARIES), *others]
        raise UnknownBackend(
            f"there is no backend {name!r}; choose from {', '.join(known)}"
            f"{did_you_mean(name, known)}"
        )


def _expand(name: str) -> tuple[list[str], str]:
    """Return the backends that a name stands for, and why they cannot run: "" if they can run."""
    chosen = BackendName.parse(name)
    reason = ""
    if name == "shm":
        reason = _why_no_shm()
    elif chosen.is_mpi and sys.platform != "linux":
        reason = "checked on Linux only, where cobre-comm can start the ranks of any MPI"
    elif name == "mpi":
        return _every_mpi()
    elif chosen.is_mpi:
        _, reason = startable_mpi(chosen.library)
    return ([], reason) if reason else ([name], "")


def _every_mpi() -> tuple[list[str], str]:
    """Return a name for each MPI that can start ranks, and the reason if no MPI can."""
    vendor, reason = startable_mpi(None)
    if reason.startswith("mpi4py is not installed"):
        return [], reason
    found = [f"mpi-{library}" for library in MPI_LIBRARIES if startable_mpi(library)[0] == library]
    if not reason and vendor not in MPI_LIBRARIES:
        found.append("mpi")
    return found, "" if found else reason


def _why_no_shm() -> str:
    if sys.platform != "linux":
        return ""
    if not SHM_FOLDER.is_dir():
        return f"there is no {SHM_FOLDER}: mount a tmpfs there, or use tcp"
    free = shutil.disk_usage(SHM_FOLDER).free
    if free < SHM_BYTES:
        return (
            f"{SHM_FOLDER} has {free / 2**20:.0f} MiB free, {SHM_BYTES / 2**20:.0f} MiB are "
            "needed: remove what is in it, or start the container with --shm-size=1g"
        )
    return ""
