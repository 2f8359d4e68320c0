"""The program of each rank: run by path, `python rank.py SYSTEM SPEC OUT`, with any interpreter.

cobre_comm and bench.ranks are those of that interpreter, so an earlier version measures itself.
SYSTEM is a backend of ours or `peer`. SPEC is a file with the rows, each with its numbers of rounds
and of calls in a round. OUT is a folder, into which each rank writes its times, the seconds of a
core that a call took it, and its host's bytes.
"""

import json
import resource
import socket
import sys
from pathlib import Path

import numpy as np

from bench.ranks.collectives import interface_bytes
from bench.ranks.sides import Mpi4py, Ours
from bench.ranks.timing import timed
from bench.ranks.work import Case, Work

CABLE = "eth0"


class OurWorld:
    """Our ranks; the slowest one is found by our own allreduce."""

    def __init__(self):
        from cobre_comm import ReduceOp, create_communicator

        self._comm, self._max = create_communicator(), ReduceOp.MAX
        self.rank, self.size = self._comm.rank, self._comm.size

    def side(self, in_region):
        if not in_region:
            return Ours(self._comm)
        from bench.ranks.sides import InPlace  # an earlier version has none

        return InPlace(self._comm)

    def slowest(self, seconds):
        found = np.empty(1)
        self._comm.allreduce(np.array([seconds]), found, self._max)
        return float(found[0])

    def close(self):
        self._comm.close()


class PeerWorld:
    """Ranks of an MPI."""

    def __init__(self):
        from mpi4py import MPI

        self._mpi, self._comm = MPI, MPI.COMM_WORLD
        self.rank, self.size = self._comm.rank, self._comm.size

    def side(self, in_region):
        return Mpi4py(self._mpi)

    def slowest(self, seconds):
        return self._comm.allreduce(seconds, self._mpi.MAX)

    def close(self):
        """MPI is finalized at the end of the process."""


def take(world, row):
    """Return what a call takes: seconds in each round, of this rank's core, bytes of its cable."""
    share = row["nbytes"] // (world.size if row["operation"] == "allgatherv" else 1) // 8 * 8
    side = world.side(row["in_region"])
    work = Work(Case(row["label"], row["operation"], share), side, world)
    timed(work.prepare(work.timed.warm))
    world.slowest(0.0)
    before, cpu_before, samples = interface_bytes(CABLE), cpu_s(), []
    for _ in range(row["rounds"]):
        block = work.prepare(row["calls"])
        world.slowest(0.0)
        samples.append(world.slowest(timed(block)) / row["calls"])
    cpu, calls = cpu_s() - cpu_before, row["rounds"] * row["calls"]
    after = interface_bytes(CABLE)
    work.verify()
    received, sent = ((b - a) / calls for a, b in zip(before, after, strict=True))
    return {"samples_s": samples, "cpu_s": cpu / calls, "received": received, "sent": sent}


def cpu_s():
    """Return the seconds that this process has had a core."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main(system, spec, out):
    world = PeerWorld() if system == "peer" else OurWorld()
    rows = json.loads(Path(spec).read_text())
    taken = {"host": socket.gethostname(), "rows": [take(world, row) for row in rows]}
    Path(out, f"{world.rank}.json").write_text(json.dumps(taken))
    world.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
