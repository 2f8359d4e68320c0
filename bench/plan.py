"""The measurements as data: jobs of ranks, measurements of a job, figures of the report.

A measurement is a hashable value: the argument of the function ``take`` of a program. The sides of
a measurement take turns in the same processes. A :class:`Figure` is one side of a measurement, and
one benchmark.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable
from dataclasses import dataclass

from bench.peers import PEERS, environment_of

OURS = "cobre_comm"
BACKENDS = ("shm", "tcp", "mpi")  # our backends, each a side
IN_REGION = "region"  # ours over shm, where ranks receive into a region
# ours over tcp, with each rank a node of its own, so that all data goes through sockets
FLAT = "flat"
OVER_SHM = "over shm"  # ours over shm, as a side beside our other backends
# Beside our way to share out items, which is by last cost: two other ways, and the ideal time.
EQUAL_SHARES, ONE_BY_ONE, IDEAL = "equal shares", "one by one", "the ideal"
WAYS = (EQUAL_SHARES, ONE_BY_ONE)
ONE_LEADER = "1 leader"  # one leader of a node; if there are several, each of them sends a part
LEADERS = {ONE_LEADER: 1, "2 leaders": 2, "4 leaders": 4}
NO_LIMIT = "no limit"  # a cable without a limit
# For each of these sides, the ratios to all other sides are recorded.
COMPARED = (*BACKENDS, IN_REGION, FLAT, "ring", *WAYS, *[*LEADERS][1:])
FRESH = "fresh data"  # the setting in which ranks write other data between the calls
SAME = "the same data"  # the name of the setting without fresh data
PEER, GLOO = "peer", "gloo"  # PEER is the MPI library that started the ranks
MEMCPY, MEMCPY_ONCE = "memcpy", "memcpy of one's own block"
# For prterun, `--mca btl ...` has no effect, so variables choose the transport. By default Open MPI
# does not use the loopback interface.
OPEN_MPI_OVER_TCP = {
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "tcp,self",
    "OMPI_MCA_btl_tcp_if_include": "lo",
}


@dataclass(frozen=True)
class Job:
    """Processes in which measurements are taken."""

    ranks: int
    # the library that starts the processes, measured beside ours: one of ``PEERS``, or ``gloo``
    library: str
    # the module of :mod:`bench` that has the function ``take`` of the ranks
    program: str = "ranks.collectives"
    nodes: str = ""  # the node of each rank, such as ``0,0,1,1``; empty if the real nodes are meant
    sockets: bool = False  # whether Open MPI is restricted to its tcp transport
    # the rate of a host's cable, as tc takes it; each node is a host (:mod:`bench.hosts`)
    cable: str = ""
    within_s: float = 7200  # seconds that the job may last

    @property
    def setting(self) -> str:
        """The difference between this job and a plain one, in the report's words."""
        if self.sockets:
            return "over sockets"
        return f"nodes {self.nodes}" if self.nodes and not self.cable else ""

    @property
    def beside(self) -> str | None:
        """The MPI library, if it is measured; None beside gloo, and beside one leader of a node."""
        return None if self.library == GLOO or (self.nodes and self.cable) else self.library

    @property
    def places(self) -> list[int]:
        """The node of each rank, if cables connect the nodes."""
        return [int(node) for node in self.nodes.split(",")] if self.nodes else [*range(self.ranks)]

    @property
    def environment(self) -> dict[str, str]:
        """Variables of all ranks.

        Our backend cannot know that pretended nodes share the cores of this machine, so a variable
        says that crowded ranks must not spin.
        """
        crowded = self.ranks > (os.cpu_count() or 1)
        made = environment_of(self.library, crowded)
        if self.sockets:
            made |= OPEN_MPI_OVER_TCP
        if self.nodes and crowded:
            made["COBRE_COMM_SPIN_US"] = "0"
        return made

    def __str__(self) -> str:
        words = [f"{self.ranks} ranks beside {self.library}", self.program]
        return ", ".join([*words, self.setting] if self.setting else words)

    def side_name(self, side: str) -> str:
        """Return the name of a side in the report."""
        if side in (*BACKENDS, IN_REGION):
            return OURS
        return PEERS[self.library] if side == PEER else side


@dataclass(frozen=True)
class Figure:
    """One side of a measurement in a job."""

    job: Job
    measurement: Hashable
    side: str  # a backend of ours, or the name of another side of the measurement
    label: str  # the row in the report
    operation: str  # the word by which targets and plots find this figure
    sent: int = 0  # bytes that a rank contributes to a call; 0 if that says nothing
    received: int = 0  # bytes that a rank receives in a call; 0 if that says nothing
    setting: str = ""  # in the report's words, if the measurement itself differs from the plain one

    @property
    def id(self) -> str:
        """Return the name of the benchmark in pytest."""
        side = self.job.side_name(self.side)
        if self.side in BACKENDS and self.side != "shm":
            side = f"{side} {self.side}"
        words = [self.label, f"{self.job.ranks} ranks", self.job.library, self.where, side]
        return "-".join(re.sub(r"[^\w.+-]+", "_", word) for word in words if word)

    @property
    def where(self) -> str:
        """The settings of the measurement and of the job."""
        return ", ".join(filter(None, [self.setting, self.job.setting]))


@dataclass(frozen=True)
class Options:
    """How long to measure: blocks of each side, seconds of a block, most seconds of all blocks."""

    rounds: int = 15
    block_s: float = 0.03
    most_s: float = 8.0


def size_label(nbytes: int) -> str:
    """Return a size as text, such as ``32 B``, ``4 KiB``, ``200 kB`` or ``12.9 MB``."""
    for unit, scale in (("MiB", 2**20), ("KiB", 2**10)):
        if nbytes >= scale and nbytes % scale == 0:
            return f"{nbytes // scale} {unit}"
    for unit, scale in (("MB", 10**6), ("kB", 10**3)):
        if nbytes >= scale and nbytes % (scale // 10) == 0:
            return f"{nbytes / scale:g} {unit}"
    return f"{nbytes} B"
