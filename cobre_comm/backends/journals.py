"""The memory of the journals of a communicator's ranks, if this process can read them.

If a rank shares memory, its journal is in the segment of its node. If not, its journal is in memory
of its own, which other processes can read (``journal/shown.py``).
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from cobre_kernels.collective.seeing import journal
from cobre_kernels.collective.seeing.journal import (
    JOURNAL,
    WAITED,
    Owner,
    note_raised_kernel,
    open_journal_kernel,
)
from cobre_kernels.machine.record import WORD_BYTES, View
from numpy.typing import NDArray

from cobre_comm.journal.copied import Copied, words_of
from cobre_comm.journal.finding import MEMORY_NAME, own_journals
from cobre_comm.journal.shown import load, show
from cobre_comm.journal.stats import Stats, stats_of, ways_of
from cobre_comm.journal.tables import table_of_ranks
from cobre_comm.journal.telling import is_telling
from cobre_comm.reports.raised import cut
from cobre_comm.system.streams import write_error

JOB_BYTES = journal.JOB_WORDS * WORD_BYTES

_numbers = itertools.count()


def job_name() -> str:
    """Return the name of this process's job, as its launcher gave it; "" without one."""
    slurm = os.environ.get("SLURM_JOB_ID")
    return (
        os.environ.get("COBRE_JOB_ID")
        or os.environ.get("COBRE_SHM_NAME", "").lstrip("/")
        or (f"slurm-{slurm}" if slurm else "")
    )


class Journals:
    """The journals of one communicator, if this process can read them.

    The addresses of the journals are written into the record of the communicator, in which rank,
    size and backend have to be set already.
    """

    def __init__(self, comm: View) -> None:
        size = comm.size
        self._comm = comm
        self.number = next(_numbers)  # counts the communicators of this process; 0 is the first
        self._names = np.arange(size, dtype=np.int64)
        self._addresses = np.zeros(size, dtype=np.int64)
        # Until this rank waits, nothing touches this table, so the table takes no memory.
        shape = journal.OPERATION_ROWS + journal.PHASE_ROWS, size, WAITED.size_bytes // WORD_BYTES
        self._waits: NDArray[Any] = np.zeros(shape, dtype=np.int64)
        comm.node.names = self._names.ctypes.data
        comm.journals = self._addresses.ctypes.data
        comm.waits = self._waits.ctypes.data
        self._note_raised = note_raised_kernel.call  # loaded now: close may run at Python's exit
        self._file, own = show(MEMORY_NAME, JOURNAL.size_bytes)
        self._memory: list[object] = [own]  # keeps the journals mapped
        self._open(own.ctypes.data)

    def move_to(self, segment: object, first: int, names: Sequence[int]) -> None:
        """Use the journals in the segment of the node from now on, one for each of its ranks.

        ``segment`` keeps the journals mapped, and ``first`` is the address of the first journal.
        ``names`` are the numbers of the node's ranks in the communicator.
        """
        for index, name in enumerate(names):
            self._addresses[name] = first + index * JOURNAL.size_bytes
        self._open(int(self._addresses[self._comm.rank]))
        self._memory = [segment]
        self.hide()

    def _open(self, address: int) -> None:
        comm = self._comm
        job = words_of(job_name().encode(), JOB_BYTES)
        owner = Owner(comm.rank, comm.size, comm.backend, os.getpid(), self.number, job.ctypes.data)
        open_journal_kernel.call(address, *owner)
        self._addresses[comm.rank] = address
        comm.journal = address

    def find(self, processes: Mapping[int, int]) -> None:
        """Look for the journals of other ranks in their processes, which may end at any time.

        If a process has several journals for this rank, size and backend, the latest is used.
        """
        comm = self._comm
        for rank, pid in processes.items():
            found = {}
            for words in own_journals(pid):
                view = JOURNAL.of(words)
                whose = load(view.rank), load(view.size), load(view.backend)
                if whose == (rank, comm.size, comm.backend):
                    found[load(view.communicator)] = words
            if found:
                words = found[max(found)]
                self._memory.append(words)
                self._addresses[rank] = words.ctypes.data

    def note_raised(self, line: str) -> None:
        """Note the exception by which this rank ends, so that other ranks' errors can name it."""
        words = words_of(cut(line, journal.RAISED_BYTES), journal.RAISED_BYTES)
        self._note_raised(self._comm.journal.address, self._comm.rank, words.ctypes.data)

    def stats(self) -> Stats:
        """Return the statistics of this rank."""
        copied = Copied.at(self._comm.journal.address)
        assert copied is not None
        stats, node = stats_of(copied, self._waits), self._comm.node
        if node.size == 1:
            return stats
        refused = bool(node.reading.is_refused)
        return dataclasses.replace(stats, ways=ways_of(node), slots_only=refused)

    def print_table(self) -> None:
        """Print the statistics of all ranks that can be read here, if this rank is their first.

        So one rank on each machine prints a table of the ranks on that machine. The rank waits for
        no other rank, so a dead rank delays nothing.
        """
        seen = [Copied.at(int(at)) for at in self._addresses if at]
        ranks = [stats_of(copied) for copied in seen if copied is not None]
        has_any = any(stats.operations or stats.phases for stats in ranks)
        if has_any and ranks[0].rank == self._comm.rank:
            number = f", communicator {self.number}" if self.number else ""
            title = f"cobre_comm statistics{number}"
            write_error(table_of_ranks(title, ranks))

    def leave_segment(self) -> None:
        """Release the segment, because no kernel uses the segment any more.

        If a thread is reading journals now to explain a failure, the segment stays as long as this
        object.
        """
        self._addresses[:] = 0  # first, so that an explanation that begins now finds no journal
        if not is_telling():
            self._memory.clear()

    def hide(self) -> None:
        """Close the descriptor by which other processes find the journal of this rank."""
        if self._file is not None:
            self._file.close()
