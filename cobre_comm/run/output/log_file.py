"""``--log-dir``: a file for each rank, with all that it writes, byte for byte."""

from __future__ import annotations

import os
from pathlib import Path

from cobre_comm.processes.job import Job
from cobre_comm.run.descriptors import SPARE_DESCRIPTORS, allow


class LogFile:
    """The file of one rank.

    Parameters
    ----------
    path : Path
        Where it is; what it held is gone. ``OSError`` if it cannot be written.

    Attributes
    ----------
    problem : str
        Why it lacks the rest of what the rank wrote; "" if it has all.
    """

    def __init__(self, path: Path) -> None:
        self.problem = ""
        self._path = path
        self._file = path.open("wb", buffering=0)

    def write(self, data: bytes) -> None:
        """Add what the rank wrote; a disk that is full does not end the job."""
        if self.problem:
            return
        view = memoryview(data)
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            self.problem = f"{self._path} is incomplete: {error.strerror}"


def open_logs(folder: str, job: Job) -> dict[int, LogFile]:
    """Return the files of the ranks that ``job`` has here; ``ValueError`` if one cannot be."""
    digits = len(str(job.size - 1))
    try:
        allow(len(job.ranks) + SPARE_DESCRIPTORS)
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103  # "" is the caller's mistake, not "."
        names = {rank: Path(folder) / f"rank-{rank:0{digits}}.log" for rank in job.ranks}
        return {rank: LogFile(path) for rank, path in names.items()}
    except OSError as error:
        raise ValueError(
            f"cannot write to --log-dir {folder!r}: {error.strerror}; name a folder of yours"
        ) from None
