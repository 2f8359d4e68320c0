"""The header of a checkpoint: its version, and the case and sizes of its cuts.

The file begins with the line `MAGIC` and the version, and a line of JSON (`Header`). Numbers of 8
bytes follow as they lie in memory, and the SHA-256 of all that. The numbers are the trace, the
reference volumes of each stage, and the cuts of each stage, coefficient by coefficient. If cuts are
selected, the points of each stage follow, with the highest cuts at them, row by row.
"""

import hashlib
import json
from dataclasses import asdict, dataclass

from case.data import Case
from stage.points import FIELDS

MAGIC = b"cobre_comm SDDP checkpoint"
VERSION = 7


class CheckpointError(ValueError):
    """A file cannot serve as checkpoint; one sentence says why, and what to do."""


@dataclass(frozen=True)
class Header:
    """The case and seed of the cuts in a checkpoint, and the sizes of its arrays."""

    case: str
    case_sha256: str
    seed: int
    trajectories: int
    hydros: int
    iterations: int
    counts: list[int]
    ring: int  # of `Plan`
    spared: int  # of `Plan`
    seen: list[int]  # of `Points`

    def encode(self) -> bytes:
        """Return the two lines at the beginning of the file."""
        return b"%s %d\n%s\n" % (MAGIC, VERSION, json.dumps(asdict(self)).encode())

    def points(self) -> list[int]:
        """Return how many points of each stage there are."""
        return [min(seen, self.ring) for seen in self.seen]

    def numbers(self, fields: int) -> int:
        """Return how many numbers follow; a record of the trace has so many `fields`."""
        reference = len(self.counts) * self.hydros
        cuts = sum(self.counts) * (self.hydros + 1)
        points = sum(self.points()) * (self.hydros + FIELDS)
        return self.iterations * fields + reference + cuts + points


def decode(data: bytes) -> Header:
    """Return the header in a line of JSON.

    Raises
    ------
    CheckpointError
        If the line is no header; the caller adds the subject of the sentence, the file.
    """
    try:
        header = Header(**json.loads(data))
        header.numbers(0)
    except (ValueError, TypeError):
        raise CheckpointError("is damaged: its header is not readable") from None
    return header


def digest_of(case: Case) -> str:
    """Return the SHA-256 of the data of `case`: all but its name and its known optimum."""
    data = asdict(case)
    for name in ("name", "known", "known_is_bound"):
        del data[name]
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
