"""The tcp backend between hosts, which are network namespaces of this machine (needs root).

    make bench-hosts    # four hosts of one rank, beside Open MPI, with cables of 1 Gb/s
    make bench-lanes    # nodes of several ranks, with one leader and with several

*Hosts*: the same processes hold MPI.COMM_WORLD and two of our communicators. One of ours sends
everything around the ring, the other communicator (named "star") sends everything behind headers.
*Lanes*: the same processes hold a communicator for each number of leaders. The cables have no
delay. A burst of 128 kB passes a cable immediately, as it passes a network card, so a short message
that is not repeated costs less than the rate says.
"""

from itertools import product

from bench.cases.grid import figures_of, shared_case
from bench.plan import LEADERS, NO_LIMIT, PEER, Job
from bench.ranks.collectives import Collective
from cobre_comm.system.cores import usable_cores
from tests.network.hosts import CABLE

HOSTS, KB, MB, MIB = 4, 1000, 1_000_000, 2**20
VISIBLE_BYTES = MB
# The operation, the amount, the bytes: in an allgatherv those of all ranks together.
LONG = [
    ("allgatherv", "64 MB", 64 * MB),
    ("broadcast", "64 MB", 64 * MB),
    ("allreduce", "16 MB", 16 * MB),
    ("allreduce", "1 MB", MB),
]
SHORT = [
    (operation, f"{amount} kB", amount * KB)
    for amount, operation in product((64, 32, 16, 8, 4), ("allgatherv", "broadcast", "allreduce"))
]
LAYOUTS = [  # nodes, ranks of each node, rate of the cables; each rank needs a core
    (2, 8, NO_LIMIT), (4, 4, NO_LIMIT), (2, 6, NO_LIMIT),
    (2, 8, "25gbit"), (4, 4, "25gbit"), (2, 8, "10gbit"),
]  # fmt: skip
# The label, the operation, the bytes, and whether data and results are in regions.
LANE_ROWS = [
    ("allreduce 8 MiB", "allreduce", 8 * MIB, False),
    ("allgatherv 12.9 MB in all", "allgatherv", 12_900_000, False),
    ("allgatherv 12.9 MB in all, into regions", "allgatherv", 12_900_000, True),
    ("broadcast 8 MiB", "broadcast", 8 * MIB, False),
    ("allgatherv 3.2 MB in all, into regions", "allgatherv", 3_200_000, True),
    ("allreduce 32 B", "allreduce", 32, False),
]


def hosts():
    cases = [shared_case(f"{name} {amount}", name, n, HOSTS) for name, amount, n in LONG + SHORT]
    asked = [
        Collective(c, ("ring", "star", PEER), interface=CABLE * (c.nbytes >= VISIBLE_BYTES))
        for c in [*cases, shared_case("barrier", "barrier", 0, HOSTS)]
    ]
    yield from figures_of([Job(HOSTS, "openmpi", cable="1gbit")], asked, setting="hosts of 1 Gb/s")


def lanes():
    for nodes, ranks, cable in LAYOUTS:
        if nodes * ranks > usable_cores():
            continue
        places = ",".join(str(node) for node in range(nodes) for _ in range(ranks))
        job = Job(nodes * ranks, "openmpi", nodes=places, cable=cable, within_s=45)
        asked = [
            Collective(shared_case(*row, nodes * ranks), tuple(LEADERS), in_place=in_place)
            for *row, in_place in LANE_ROWS
        ]
        yield from figures_of([job], asked, setting=f"lanes, {nodes} x {ranks}, {cable}")


FIGURES = {"test_on_hosts": hosts, "test_leaders": lanes}


def test_on_hosts(record_figure):
    record_figure()


def test_leaders(record_figure):
    record_figure()
