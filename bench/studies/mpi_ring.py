"""``MPI_Iallgatherv`` beside a ring of sends, among hosts of network namespaces.

    python -m bench.studies mpi_ring [-n 2 4] [--rate 1gbit] [--library openmpi mpich]

In the same processes both take turns. Around the ring, a rank sends its own block to the next rank,
and then passes on what comes from the rank before. Both gather in place and are polled, as in our
waits. From what size on our leaders take the ring is in cobre_kernels/mpi/verbs.py. Needs root.
"""

from __future__ import annotations

import os
import time
from itertools import product
from statistics import quantiles

import numpy as np

from bench.report.text import number, table
from bench.studies.study import parser_of
from tests.network.hosts import Network
from tests.network.pool import MpiHostedPool

BLOCK_BYTES = [8_000, 64_000, 512_000, 4_000_000]
LIMIT_S = 300


def _poll(requests):
    for request in requests:
        while not request.Test():
            os.sched_yield()


def _library(world, recv, count):
    from mpi4py import MPI

    _poll([world.Iallgatherv(MPI.IN_PLACE, [recv, [count] * world.size])])


def _ring(world, recv, count):
    blocks = recv.reshape(world.size, count)
    following, before = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    for step in range(world.size - 1):
        taken = world.Irecv(blocks[(before - step) % world.size], before)
        given = world.Isend(blocks[(world.rank - step) % world.size], following)
        _poll([given, taken])


def take(_, nbytes, rounds):
    """Return, for each way, the seconds of the slowest rank in each round."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    recv = np.zeros(world.size * nbytes, np.uint8)
    seconds: dict[str, list[float]] = {}
    for turn in range(rounds + 1):
        for way in (_library, _ring) if turn % 2 else (_ring, _library):
            recv[world.rank * nbytes :][:nbytes] = world.rank + turn
            world.Barrier()
            began = time.perf_counter()
            way(world, recv, nbytes)
            took = world.allreduce(time.perf_counter() - began, MPI.MAX)
            assert [int(n) for n in recv[::nbytes]] == [r + turn for r in range(world.size)]
            if turn:  # the first round makes connections
                seconds.setdefault(way.__name__, []).append(took)
    return seconds


def taken(library, size, options):
    """Return the seconds of both ways by the bytes of a block, on so many hosts."""
    with Network(size) as network:
        for host in network.hosts:
            host.shape(options.rate)
        nodes = ",".join(map(str, range(size)))
        pool = MpiHostedPool(f"mpi-{library}-net:{nodes}", network.hosts)
        try:
            return {
                nbytes: pool.run(take, nbytes, options.rounds, timeout_s=LIMIT_S)[0]
                for nbytes in BLOCK_BYTES
            }
        finally:
            pool.end()


def main() -> None:
    parser = parser_of(__doc__, ranks=[2, 4])
    parser.add_argument("--rate", default="1gbit", help="of each cable and direction, as for tc")
    parser.add_argument("--library", nargs="+", default=["openmpi", "mpich"])
    options = parser.parse_args()
    rows = []
    for library, size in product(options.library, options.ranks):
        for nbytes, took in taken(library, size, options).items():
            quarters = [quantiles(took[way], n=4) for way in ("_library", "_ring")]
            shown = [" to ".join(number(1e3 * each) for each in three) for three in quarters]
            ratio = number(quarters[1][1] / quarters[0][1])
            rows.append([library, str(size), f"{nbytes // 1000} kB", *shown, ratio])
    words = ["MPI_Iallgatherv, ms", "ring of sends, ms", "ring / MPI_Iallgatherv"]
    print(table(["library", "hosts", "a rank's block", *words], rows))
