"""The measurements as data: jobs of ranks, measurements of a job, figures of the report.

A measurement is a hashable value, the argument of the function ``take`` of a program. Its sides
take turns in the same processes. A :class:`Figure` is one side of it, and one benchmark.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable
from dataclasses import dataclass

from bench.peers import PEERS, environment_of

OURS = "cobre_comm"
BACKENDS = ("shm", "tcp", "mpi")  # sides of ours
IN_REGION = "region"  # ours over shm, where ranks receive into a region
FLAT = "flat"  # ours over tcp, where every rank is a node of its own: all goes through sockets
OVER_SHM = "over shm"  # the side beside our other backends, where all ranks share memory
# Ways to share out items beside ours, by last cost; and the time if no rank ever waited.
EQUAL_SHARES, ONE_BY_ONE, IDEAL = "equal shares", "one by one", "the ideal"
WAYS = (EQUAL_SHARES, ONE_BY_ONE)
COMPARED = (*BACKENDS, IN_REGION, FLAT, "ring", *WAYS)  # with ratios to the others
FRESH = "fresh data"  # the setting in which ranks write other data between the calls
SAME = "the same data"  # the name of the other setting beside it
PEER, GLOO = "peer", "gloo"  # PEER is the MPI library that started the ranks
MEMCPY, MEMCPY_ONCE = "memcpy", "memcpy of one's own block"
# prterun takes `--mca btl ...` without effect, so variables choose the transport. Open MPI leaves
# the loopback interface out by default.
OPEN_MPI_OVER_TCP = {
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "tcp,self",
    "OMPI_MCA_btl_tcp_if_include": "lo",
}


@dataclass(frozen=True)
class Job:
    """Processes in which measurements are taken.

    Attributes
    ----------
    ranks : int
        Number of ranks.
    library : str
        The library that starts them and is measured beside ours: one of ``PEERS``, or ``gloo``.
    program : str
        Module of :mod:`bench` whose ``take`` they run.
    nodes : str
        The node of each rank for our mpi backend, such as ``0,0,1,1``; empty for the real ones.
    sockets : bool
        Whether Open MPI is restricted to its tcp transport.
    """

    ranks: int
    library: str
    program: str = "ranks.collectives"
    nodes: str = ""
    sockets: bool = False

    @property
    def setting(self) -> str:
        """The difference between this job and a plain one, in the report's words."""
        if self.sockets:
            return "over sockets"
        return f"nodes {self.nodes}" if self.nodes else ""

    @property
    def environment(self) -> dict[str, str]:
        """Variables of all ranks.

        Our backend cannot know that pretended nodes share the cores of this machine.
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
    """One side of a measurement in a job.

    Attributes
    ----------
    job, measurement
        The job, and the measurement in it.
    side : str
        A backend of ours, or the name of another side of the measurement.
    label, operation : str
        The row in the report, and the word by which targets and plots find it.
    sent, received : int
        Bytes that a rank contributes to a call and receives by it; 0 if that says nothing.
    setting : str
        As in the report, where the measurement differs from the plain one in more than its job.
    """

    job: Job
    measurement: Hashable
    side: str
    label: str
    operation: str
    sent: int = 0
    received: int = 0
    setting: str = ""

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
        """The settings of measurement and job."""
        return ", ".join(filter(None, [self.setting, self.job.setting]))


@dataclass(frozen=True)
class Options:
    """How long to measure: blocks of each side, seconds of a block, and of all blocks at most."""

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
