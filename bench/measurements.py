"""What a job of ranks measures, and which benchmark of pytest shows which part of it.

A :class:`Measurement` is a few entries, each an operation of one side, that take turns in the same
processes. A :class:`Figure` is one entry of a measurement in a job: one benchmark.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

from tcp_cases import CUT_BYTES, POINT, STAGES, TRAJECTORIES, Case

OURS = ("shm", "tcp", "mpi")  # backends of cobre_comm
PEER, MEMCPY, GLOO = "peer", "memcpy", "gloo"
LIBRARY_NAMES = {"openmpi": "Open MPI", "mpich": "MPICH", "gloo": "gloo"}
OPERATIONS = {"sum": "allreduce"}
SDDP_BYTES = STAGES * TRAJECTORIES * POINT * 8 + (STAGES - 1) * TRAJECTORIES * CUT_BYTES + 5 * 8


@dataclass(frozen=True)
class Entry:
    """One side's calls: ``side`` is a backend of ours, ``peer``, ``memcpy`` or ``gloo``."""

    side: str
    case: Case

    @property
    def is_ours(self) -> bool:
        return self.side in OURS


@dataclass(frozen=True)
class Measurement:
    """Entries that take turns; ``single``: also time calls one by one, for their own p99."""

    entries: tuple[Entry, ...]
    single: bool = False

    def to_json(self) -> dict:
        entries = [[entry.side, *astuple(entry.case)] for entry in self.entries]
        return {"entries": entries, "single": self.single}

    @classmethod
    def from_json(cls, told: dict) -> Measurement:
        entries = (Entry(side, Case(*case)) for side, *case in told["entries"])
        return cls(tuple(entries), told["single"])

    @property
    def label(self) -> str:
        return ", ".join(dict.fromkeys(entry.case.label for entry in self.entries))


@dataclass(frozen=True)
class Job:
    """Processes in which measurements are taken: how many, and which library they have."""

    ranks: int
    library: str

    def side_name(self, entry: Entry) -> str:
        """Return what the report calls an entry's side."""
        if entry.is_ours:
            return "cobre_comm"
        return LIBRARY_NAMES[self.library] if entry.side == PEER else entry.side


@dataclass(frozen=True)
class Figure:
    """One entry of a measurement in a job. A benchmark's id is made of it."""

    job: Job
    measurement: Measurement
    entry: Entry

    @property
    def id(self) -> str:
        side = self.job.side_name(self.entry).replace(" ", "_")
        backend = f"_{self.entry.side}" if self.entry.is_ours and self.entry.side != "shm" else ""
        size = self.entry.case.label.partition(" ")[2].replace(" ", "")
        words = [size] * bool(self.entry.case.nbytes)
        return "-".join([*words, f"{self.job.ranks}ranks", self.job.library, side + backend])

    @property
    def operation(self) -> str:
        name = self.entry.case.operation
        return OPERATIONS.get(name, name)

    @property
    def sent_bytes(self) -> int:
        """What a rank contributes to one call."""
        case = self.entry.case
        return SDDP_BYTES // self.job.ranks if case.operation == "sddp" else case.nbytes

    @property
    def received_bytes(self) -> int | None:
        """What stands in a rank's receiving buffers after one call; None if that is nothing."""
        if self.operation == "sddp":
            return SDDP_BYTES
        gathers = self.operation == "allgatherv"
        return self.entry.case.nbytes * (self.job.ranks if gathers else 1) or None


def size_label(nbytes: int) -> str:
    """Return such as ``32 B``, ``4 KiB``, ``200 kB`` or ``12.9 MB``."""
    for unit, scale in (("MiB", 2**20), ("KiB", 2**10)):
        if nbytes >= scale and nbytes % scale == 0:
            return f"{nbytes // scale} {unit}"
    for unit, scale in (("MB", 10**6), ("kB", 10**3)):
        if nbytes >= scale and nbytes % (scale // 10) == 0:
            return f"{nbytes / scale:g} {unit}"
    return f"{nbytes} B"
