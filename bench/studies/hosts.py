"""Our tcp backend beside Open MPI, between hosts whose cables are as fast as a usual network's.

    python -m bench.studies hosts [-n 4] [--rate 1gbit]

The hosts are network namespaces on this machine (tests/network/hosts.py; needs root), one rank on
each; their cables are limited to a rate in each direction. The same processes hold MPI.COMM_WORLD
and two of our communicators, which take turns block by block. One sends everything around the ring,
the other (named "star") everything behind headers.

The cables have no delay, and a burst of 128 kB passes them at once, as it passes a network card: a
short message that is not repeated costs less than the rate says.
"""

from __future__ import annotations

import os
from functools import partial

from bench.cases.grid import figures_of, jobs_of
from bench.jobs import run_job
from bench.plan import OPEN_MPI_OVER_TCP, PEER, Job, Options
from bench.ranks.collectives import Collective
from bench.ranks.job import take_all
from bench.ranks.work import Case
from bench.ranks.world import COORDINATOR
from bench.report.pages import TABLES
from bench.studies.study import measure, parser_of
from tests.network.hosts import CABLE, MPI_ON_CABLE, Network, inside

VISIBLE_BYTES = 1_000_000
SETTING = "hosts of 1 Gb/s"
OPEN_MPI = {**OPEN_MPI_OVER_TCP, **MPI_ON_CABLE}


def cases(size: int) -> list[Case]:
    """Return the cases; the label of an allgatherv has the bytes of all ranks together."""
    long = [("allgatherv", 64), ("broadcast", 64), ("allreduce", 16), ("allreduce", 1)]
    rows = [(name, f"{megabytes} MB", megabytes * 1_000_000) for name, megabytes in long]
    rows += [
        (name, f"{kilobytes} kB", kilobytes * 1000)
        for kilobytes in (64, 32, 16, 8, 4)
        for name in ("allgatherv", "broadcast", "allreduce")
    ]
    made = []
    for name, amount, nbytes in rows:
        share = nbytes // size if name == "allgatherv" else nbytes
        operation = "sum" if name == "allreduce" else name
        made.append(Case(f"{name} {amount}", operation, share // 8 * 8))
    return [*made, Case("barrier", "barrier")]


def take_on_hosts(comm, hosts: list[str], *args: object) -> dict:
    """Move this rank to its own host; take measurements there."""
    with inside(hosts[int(os.environ["PMIX_RANK"])]):
        return take_all(comm, *args)


def start(rate: str, job: Job, measurements: list, options: Options) -> dict:
    """Make the hosts and start, on the first one, the ranks that then move to their own.

    Ranks use only the networks of hosts, because they must stay children of this process.
    """
    with Network(job.ranks) as network:
        for host in network.hosts:
            host.shape(rate)
        environment = {**OPEN_MPI, COORDINATOR: network.hosts[0].address}
        names = [host.name for host in network.hosts]
        with inside(names[0]):
            args = names, job.library, job.program, measurements, options
            return run_job(job, take_on_hosts, *args, environment=environment)


def main() -> None:
    parser = parser_of(__doc__, ranks=[4])
    parser.add_argument("--rate", default="1gbit", help="of each cable and direction, as for tc")
    options = parser.parse_args()
    asked = [
        figure
        for ranks in options.ranks
        for figure in figures_of(
            jobs_of([ranks], ["openmpi"]),
            [
                Collective(c, ("ring", "star", PEER), interface=CABLE * (c.nbytes >= VISIBLE_BYTES))
                for c in cases(ranks)
            ],
            setting=SETTING,
        )
    ]
    measure("hosts", asked, options, TABLES["hosts"], partial(start, options.rate))
