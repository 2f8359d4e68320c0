"""From how many nodes on is an exchange by hops faster than one from each leader to each?

    python -m bench.studies hops [-n 2 4 8 16 32] [--cables "no limit" ...]

Every rank is a node of its own. In the processes of one job Open MPI over tcp and two communicators
of ours take turns block by block: one of ours sends each header to all leaders, the other of ours
goes by hops. Without --cables all ranks are on the loopback; else each rank is on a host of its own
(root alone). A cell has the median of microseconds, and the least and the most of all blocks. The
last column is what the formula chooses, by the longest round trip of the links.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import statistics
import time

from bench.hosts import inside, on_hosts
from bench.jobs import run_job
from bench.plan import PEER, Job, Options
from bench.ranks.sides import Ours
from bench.ranks.timing import measure
from bench.ranks.work import Case, Work
from bench.ranks.world import MpiWorld
from bench.report.text import number, table
from cobre_comm.backends.tcp import memory

CASES = [
    Case("barrier", "barrier"),
    Case("allreduce 32 B", "sum", 32),
    Case("allreduce 4 KiB", "sum", 4096),
]
ALL_TO_ALL, HOPS = "all to all", "hops"
SIDES = (ALL_TO_ALL, HOPS, PEER)
HOW_LONG = Options(rounds=15, block_s=0.05, most_s=6.0)
LOOPBACK = ""
HEADER_BYTES = 40  # of a message without payload
JOB_LIMIT_S = 170


def main() -> None:
    parser = argparse.ArgumentParser(prog="hops", description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, nargs="+", default=[2, 4, 8, 16, 32], dest="ranks")
    parser.add_argument("--cables", nargs="+", default=[LOOPBACK], help="rates, as tc has them")
    arguments = parser.parse_args()
    rows = []
    for cable in arguments.cables:
        for ranks in arguments.ranks:
            rows += rows_of(cable, ranks)
    header = ["", "nodes", "collective", ALL_TO_ALL, HOPS, "Open MPI", "hops / all to all",
              "hops / Open MPI", "the formula chooses"]  # fmt: skip
    print(table(header, rows))
    print(f"to send or to receive a message of {HEADER_BYTES} B: {number(message_us())} µs")


def message_us() -> float:
    """Return half the microseconds in which this process sends a message to itself, and reads it.

    The process uses many links in turn, as a leader does.
    """
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        links = []
        for _ in range(16):
            links.append((socket.create_connection(server.getsockname()), server.accept()[0]))
            for link in links[-1]:
                stack.enter_context(link).setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        message, taken = bytes(HEADER_BYTES), []
        for _ in range(500):
            began = time.perf_counter()
            for ours, theirs in links:
                ours.send(message)
                theirs.recv(HEADER_BYTES)
            taken.append(time.perf_counter() - began)
        return 1e6 * statistics.median(taken) / len(links) / 2


def rows_of(cable: str, ranks: int) -> list[list[str]]:
    """Return the rows of one job."""
    job = Job(ranks, "openmpi", sockets=not cable, cable=cable, within_s=JOB_LIMIT_S)
    if cable:
        with on_hosts(job) as (hosts, environment):
            spin = {"COBRE_COMM_SPIN_US": "0"} if ranks > (os.cpu_count() or 1) else {}
            told = run_job(job, take_there, hosts, **environment, **spin)
    else:
        told = run_job(job, take)
    place = f"hosts, {cable}" if cable else "loopback"
    choice = f"{HOPS if memory.pays(ranks, told['round_trip_us']) else ALL_TO_ALL}, by "
    rows = []
    for label, samples in told["samples_s"].items():
        middle = {side: statistics.median(taken) for side, taken in samples.items()}
        cells = [
            f"{number(1e6 * middle[side])} ({number(1e6 * min(samples[side]))} to "
            f"{number(1e6 * max(samples[side]))})"
            for side in SIDES
        ]
        ratios = [number(middle[HOPS] / middle[side]) for side in (ALL_TO_ALL, PEER)]
        rows.append([place, str(ranks), label, *cells, *ratios,
                     f"{choice}{told['round_trip_us']} µs"])  # fmt: skip
        print(*rows[-1], sep=" | ", flush=True)
    return rows


def take_there(comm, hosts: list[str]) -> dict:
    """Move this rank to the network of its host; time all sides there."""
    with inside(hosts[int(os.environ["PMIX_RANK"])]):
        return take(comm)


def take(comm) -> dict:
    """Return the samples of each case by side, and the longest round trip; results are verified."""
    del comm
    world, samples, seen = MpiWorld(), {}, []

    def made(side: str) -> Ours:
        def force(nodes: int, round_trip_us: int) -> bool:
            seen.append(round_trip_us)
            return side == HOPS

        memory.pays = force
        return Ours(world.communicator("tcp", share=False))

    sides = {ALL_TO_ALL: made(ALL_TO_ALL), HOPS: made(HOPS), PEER: world.side(PEER)}
    for case in CASES:
        works = {name: Work(case, side, world, sets=1) for name, side in sides.items()}
        timed = {name: work.timed for name, work in works.items()}
        samples[case.label] = measure(timed, world.slowest, HOW_LONG)["samples_s"]
        for work in works.values():
            work.verify()
    world.close()
    return {"samples_s": samples, "round_trip_us": seen[0]}
