"""A fault: its kind, its victim and its moment; and the account that a rank gives of the fault."""

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

    A kind whose name begins with ``two_`` also strikes the next rank.
    """

    kind: str  # a name of `kinds.KINDS`
    victim: int
    size: int
    backend: str = "shm"
    caller: str = "mixed"
    # When the fault strikes: while ranks meet (`start`), in a collective or between two (`step`),
    # while a region is made (`region`), while the communicator is split (`split`), in a call whose
    # caller holds the only reference to the communicator (`last`), or at the end (`close`).
    moment: str = STEP
    step: int = 3  # the fault is armed before this step
    # The time from arming to the strike, if the strike comes from outside the rank's own code.
    delay_s: float = 0.0
    # How long ranks continue after a fault that must not matter, or how long a pause lasts.
    lasts_s: float = 0.2
    seed: int = 0  # decides the steps
    limit_s: float = 60.0  # how long a live rank is waited for
    start: str = "hand"  # `hand` (by environment variables), `run` (`cobre-comm run`) or `launch`
    env: Mapping = field(default_factory=dict)  # environment variables of all ranks
    large_bytes: int = 0  # of the payload of some steps, and of the step at which the fault strikes
    way: int = -1  # that large payloads of private memory are forced to take; -1: none is forced

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
    """The file to which a rank adds each fact of its account at once, because it may be killed.

    Each line is one system call on a descriptor that the line opens, so a rank that has closed all
    descriptors can still write.
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
    """Return all facts that a rank has written into its account so far."""
    facts = {}
    with contextlib.suppress(OSError):
        for line in (pathlib.Path(folder) / f"account.{name}").read_text().splitlines():
            with contextlib.suppress(ValueError):  # the rank may be writing its last line now
                facts.update(json.loads(line))
    return facts


def await_fact(folder, names, fact, limit_s=20.0):
    """Wait until each of these ranks has written down a fact; return whether all of them have."""
    return wait_until(lambda: all(fact in told(folder, name) for name in names), limit_s)
