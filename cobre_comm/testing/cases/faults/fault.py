"""One fault: its kind, its victim and its moment; and the account that a rank gives of it."""

import contextlib
import json
import os
import pathlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from cobre_comm.testing.cases.waiting import wait_until

START, STEP, REGION, SPLIT = "start", "step", "region", "split"
LAST, CLOSE = "last", "close"


@dataclass(frozen=True)
class Fault:
    """A kind of fault, the job and the rank that it strikes, and the moment.

    A kind that begins with ``two_`` befalls the next rank too.
    """

    kind: str  # a name of `kinds.KINDS`
    victim: int
    size: int
    backend: str = "shm"
    caller: str = "mixed"
    # While ranks meet (`start`), in or between collectives (`step`), while a region is made
    # (`region`), while the communicator is split (`split`), in a call that alone holds its
    # communicator (`last`), or at the end (`close`).
    moment: str = STEP
    step: int = 3  # the step before which it is armed
    # From its arming until it strikes, where something outside the rank's own code strikes.
    delay_s: float = 0.0
    # How long ranks continue after a fault that must not matter; or how long a pause lasts.
    lasts_s: float = 0.2
    seed: int = 0  # of the steps
    limit_s: float = 60.0  # how long a live rank is waited for
    start: str = "hand"  # `hand` (by environment variables), `run` (`cobre-comm run`) or `launch`
    env: Mapping = field(default_factory=dict)  # environment variables of all ranks

    @property
    def victims(self):
        """The ranks that the fault strikes."""
        count = 2 if self.kind.startswith("two_") else 1
        return [(self.victim + n) % self.size for n in range(count)]

    @property
    def others(self):
        """All ranks but the victims."""
        return [rank for rank in range(self.size) if rank not in self.victims]

    def __str__(self):
        return f"{self.kind}-{self.victim}-{self.moment}"


class Ledger:
    """The file in which a rank writes its account, line by line, so that a killed rank has one too.

    A line is written by one system call on a descriptor of its own: a rank that closes all its
    descriptors continues to write.
    """

    def __init__(self, folder, name):
        self._path = pathlib.Path(folder) / f"account.{name}"

    def tell(self, **facts):
        line = json.dumps(facts).encode() + b"\n"
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, line)
        finally:
            os.close(fd)


def told(folder, name):
    """Return all facts that a rank has written down so far."""
    facts = {}
    with contextlib.suppress(OSError):
        for line in (pathlib.Path(folder) / f"account.{name}").read_text().splitlines():
            with contextlib.suppress(ValueError):  # the last line of a rank that is writing it
                facts.update(json.loads(line))
    return facts


def await_fact(folder, names, fact, limit_s=20.0):
    """Wait until each of some ranks has written down a fact; return whether all have."""
    return wait_until(lambda: all(fact in told(folder, name) for name in names), limit_s)
