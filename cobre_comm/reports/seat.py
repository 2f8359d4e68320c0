"""The seat of a process in its job, and the process that has taken it.

Environment variables tell a process which rank of which job it is. All descendants of the process
inherit these variables, and no descendant is that rank. So the first process that imports
``create_communicator``, or makes a communicator, takes the seat: it sets another variable, which
its descendants inherit too, and which names the process and the seat. A shell, or a program such as
``conda run``, takes no seat, so the process that it starts can take the seat.

If a descendant is a rank of another job, its seat is another one, and the variable does not apply.
MPICH may give a rank of another job the same rank and size. But such a rank has another socket to
its starter; a plain child has no such socket, because Python closes it.
"""

from __future__ import annotations

import os
import stat
import sys
import zlib
from collections.abc import Mapping
from typing import NamedTuple

from cobre_comm.system.start_time import start_time

VARIABLE = "COBRE_RANK_PROCESS"  # PID:START:SEAT:LINK
_NO_LINK = 0


class _Row(NamedTuple):
    """The variables by which one kind of launcher describes a seat."""

    rank: str
    size: str
    others: tuple[str, ...]


_ROWS = (  # the launcher that is nearest to the process comes first
    _Row("COBRE_SHM_RANK", "COBRE_SHM_SIZE", ("COBRE_SHM_NAME",)),
    _Row("COBRE_TCP_RANK", "COBRE_TCP_SIZE", ("COBRE_TCP_COORDINATOR", "COBRE_TCP_PORT")),
    _Row("COBRE_RANK", "COBRE_SIZE", ("COBRE_JOB",)),  # for backends of other distributions
    _Row("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ("PMIX_NAMESPACE",)),
    _Row("PMI_RANK", "PMI_SIZE", ()),
    _Row("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", ("SLURM_JOB_ID", "SLURM_STEP_ID")),
    _Row("RANK", "WORLD_SIZE", ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID")),
)


def claim() -> None:
    """Take the seat that the environment describes, unless another process has taken it."""
    seat = _seat(os.environ)
    if seat and not taken_by_another():
        pid = os.getpid()
        os.environ[VARIABLE] = f"{pid}:{start_time(pid)}:{seat}:{_link(os.environ)}"


def taken_by_another() -> str:
    """Say which process has taken the seat that the environment describes; "" if none has."""
    pid, _, rest = os.environ.get(VARIABLE, "").partition(":")
    started, _, rest = rest.partition(":")
    seat, _, link = rest.partition(":")
    if not seat or seat != _seat(os.environ):
        return ""
    if (pid, started) == (str(os.getpid()), str(start_time(os.getpid()))):
        return ""
    if str(_link(os.environ)) not in (str(_NO_LINK), link):
        return ""
    rank = next(os.environ[row.rank] for row in _told(os.environ))
    return f"process {pid}, which has started this one, is rank {rank} of the job"


def rank_here() -> int | None:
    """Return the rank of this process in its job; None if the environment does not say."""
    rows = [] if taken_by_another() else _told(os.environ)
    rank = os.environ[rows[0].rank] if rows else ""
    return int(rank) if rank.isdigit() else None


def imports_its_script() -> bool:
    """Whether this is a child of multiprocessing that is still importing its parent's script."""
    module = sys.modules.get("multiprocessing.process")  # this function imports nothing
    return module is not None and hasattr(module.current_process(), "_inheriting")


def _seat(environ: Mapping[str, str]) -> str:
    """Return a short name of the seat that an environment describes; "" if there is none."""
    rows = _told(environ)
    names = [name for row in rows for name in (row.rank, row.size, *row.others)]
    words = [f"{name}={environ.get(name, '')}" for name in (*names, "COBRE_JOB_ID")]
    return f"{zlib.crc32(' '.join(words).encode()):08x}" if rows else ""


def _told(environ: Mapping[str, str]) -> list[_Row]:
    return [row for row in _ROWS if environ.get(row.rank) and _is_size(row, environ)]


def _is_size(row: _Row, environ: Mapping[str, str]) -> bool:
    size = environ.get(row.size, "")
    # A step of Slurm with one task is no seat, because the shell of salloc is such a task.
    return size.isdigit() and (size != "1" or not row.size.startswith("SLURM"))


def _link(environ: Mapping[str, str]) -> int:
    """Return the inode of the socket to MPICH's starter; _NO_LINK if there is no such socket."""
    try:
        status = os.fstat(int(environ.get("PMI_FD", "")))
    except (ValueError, OSError, OverflowError):
        return _NO_LINK
    return status.st_ino if stat.S_ISSOCK(status.st_mode) else _NO_LINK
