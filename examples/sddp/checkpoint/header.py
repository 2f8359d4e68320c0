"""The header of a checkpoint: its version, and the case and sizes of its cuts.

The file begins with a line that has `MAGIC` and the version, and with a line of JSON (`Header`).
Then numbers of 8 bytes follow as they are in memory, and the SHA-256 of all bytes before. The
numbers are the trace, the reference volumes of each stage, and the cuts of each stage, coefficient
by coefficient. If cuts are selected, the points of each stage follow, each with its highest cut,
row by row.
"""

import hashlib
import json
from dataclasses import asdict, dataclass

from case.data import Case
from stage.points import FIELDS

MAGIC = b"cobre_comm SDDP checkpoint"
VERSION = 7


class CheckpointError(ValueError):
    """A file cannot serve as a checkpoint; one sentence says why, and what the user can do."""


@dataclass(frozen=True)
class Header:
    """The case and the seed of a checkpoint's cuts, and the sizes of the arrays."""

    case: str
    case_sha256: str
    seed: int
    trajectories: int
    hydros: int
    iterations: int
    counts: list[int]
    ring: int  # the field of `Plan`
    spared: int  # the field of `Plan`
    seen: list[int]  # the field of `Points`

    def encode(self) -> bytes:
        """Return the two lines at the beginning of the file."""
        return b"%s %d\n%s\n" % (MAGIC, VERSION, json.dumps(asdict(self)).encode())

    def points(self) -> list[int]:
        """Return how many points each stage has."""
        return [min(seen, self.ring) for seen in self.seen]

    def numbers(self, fields: int) -> int:
        """Return how many numbers follow; a record of the trace has `fields` numbers."""
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
