"""``--log-dir``: a file for each rank, which gets all bytes of its output."""

from __future__ import annotations

import os
from pathlib import Path

from cobre_comm.processes.job import Job
from cobre_comm.system.open_files import SPARE_DESCRIPTORS, allow


class LogFile:
    """The file of one rank, which replaces an earlier file; ``OSError`` if it cannot be made."""

    def __init__(self, path: Path) -> None:
        self.problem = ""  # a sentence, if the end of the output is missing; else ""
        self._path = path
        self._file = path.open("wb", buffering=0)

    def write(self, data: bytes) -> None:
        """Add bytes of the rank; a full disk does not end the job."""
        if self.problem:
            return
        view = memoryview(data)
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            self.problem = f"{self._path} is incomplete: {error.strerror}"


def open_logs(folder: str, job: Job) -> dict[int, LogFile]:
    """Open the files of the ranks of this node; ``ValueError`` if a file cannot be made."""
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
