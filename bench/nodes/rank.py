"""The program of each rank: run by path, `python rank.py SYSTEM SPEC OUT`, with any interpreter.

cobre_comm and bench.ranks are those of that interpreter, so an earlier version measures itself.
SYSTEM is a backend of ours or `peer`. SPEC is a file with the rows, each with its numbers of rounds
and of calls in a round. OUT is a folder, into which each rank writes its times and its host's
bytes.
"""

import json
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
        self.side = Ours(self._comm)

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
        self.side = Mpi4py(MPI)

    def slowest(self, seconds):
        return self._comm.allreduce(seconds, self._mpi.MAX)

    def close(self):
        """MPI is finalized at the end of the process."""


def take(world, row):
    """Return the seconds of a call in each round, and the bytes of a call on this host's cable."""
    share = row["nbytes"] // (world.size if row["operation"] == "allgatherv" else 1) // 8 * 8
    work = Work(Case(row["label"], row["operation"], share), world.side, world)
    timed(work.prepare(work.timed.warm))
    world.slowest(0.0)
    before, samples = interface_bytes(CABLE), []
    for _ in range(row["rounds"]):
        block = work.prepare(row["calls"])
        world.slowest(0.0)
        samples.append(world.slowest(timed(block)) / row["calls"])
    after, calls = interface_bytes(CABLE), row["rounds"] * row["calls"]
    work.verify()
    received, sent = ((b - a) / calls for a, b in zip(before, after, strict=True))
    return {"samples_s": samples, "received": received, "sent": sent}


def main(system, spec, out):
    world = PeerWorld() if system == "peer" else OurWorld()
    rows = json.loads(Path(spec).read_text())
    taken = {"host": socket.gethostname(), "rows": [take(world, row) for row in rows]}
    Path(out, f"{world.rank}.json").write_text(json.dumps(taken))
    world.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
