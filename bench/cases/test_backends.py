"""The tcp and mpi backends on one machine, beside their peers: `make bench-tcp`, `make bench-mpi`.

*On one node*: tcp beside shm; where ranks share memory, tcp uses the kernels of shm. *Over
sockets*: tcp with a node for each rank, beside Open MPI in the same processes; Open MPI is
restricted to its tcp transport. gloo has processes of its own. *Over MPI*: mpi beside mpi4py in the
same processes. With a node for each rank, all our data go through MPI too; with two nodes of two
ranks, only the data between nodes go through MPI. Large payloads over MPI are also measured with
data that ranks write before each call.
"""

from bench.cases.grid import RANKS, figures_of, jobs_of, rows
from bench.cases.test_collectives import ALLGATHERV, ALLREDUCE, BARRIER, BROADCAST, ITERATION, MIB
from bench.cases.test_njit_loops import ROWS, sides
from bench.peers import LIBRARIES
from bench.plan import FLAT, GLOO, OVER_SHM, PEER, Job
from bench.ranks.collectives import Collective
from bench.ranks.njit.loops import NUMBA_MPI, NjitLoop

VISIBLE_BYTES = 512 * 1024  # enough bytes to show clearly in the counters of an interface
TCP_ROWS = [BARRIER, *ALLREDUCE[1:], *ALLGATHERV, *BROADCAST, ITERATION]
MPI_ROWS = [
    BARRIER,
    *rows("broadcast", "broadcast", [32, 4096, 10_000, 200_000, 8 * MIB]),
    *rows("allgatherv", "allgatherv", [32, 4096, 32768, 200_000, 12_900_000]),
    *ALLREDUCE,
    ITERATION,
]
FRESH_ROWS = [case for case in MPI_ROWS if case.operation == "sddp" or case.nbytes >= 10_000]
NJIT_ROWS = {
    **ROWS,
    "broadcast 4 KiB": ("broadcast", 4096),
    "allgatherv 4 KiB": ("allgatherv", 4096),
}
OVER_MPI, ON_ONE_NODE = "over MPI", "on one node"
NODES = {2: ["0,1"], 4: ["0,1,2,3", "0,0,1,1"]}


def over_tcp():
    visible = {case: "lo" for case in TCP_ROWS if case.nbytes >= VISIBLE_BYTES}
    asked = [Collective(c, (FLAT, PEER), interface=visible.get(c, "")) for c in TCP_ROWS]
    jobs = jobs_of(RANKS, ["openmpi"], sockets=True)
    yield from figures_of(jobs, asked)
    together = [Collective(case, ("tcp", OVER_SHM)) for case in TCP_ROWS]
    yield from figures_of(jobs_of(RANKS, ["openmpi"]), together, setting=ON_ONE_NODE)
    alone = [Collective(case, (GLOO,)) for case in TCP_ROWS]
    gloo = [Job(ranks, GLOO) for ranks in RANKS]
    yield from figures_of(gloo, alone, setting=jobs[0].setting)


def over_mpi():
    asked = [Collective(case, ("mpi", PEER)) for case in MPI_ROWS]
    yield from figures_of(jobs_of(RANKS), asked, setting=OVER_MPI)
    fresh = [Collective(case, ("mpi", PEER), fresh=True) for case in FRESH_ROWS]
    written = f"{OVER_MPI}, data written before each call"
    yield from figures_of(jobs_of([2]), fresh, setting=written)
    for ranks, lists in NODES.items():
        for nodes in lists:
            libraries = LIBRARIES if ranks == 2 else ["openmpi"]
            yield from figures_of(jobs_of([ranks], libraries, nodes=nodes), asked, setting=OVER_MPI)


def njit_over_mpi():
    for ranks, nodes in ((2, ""), (4, ""), (2, "0,1")):
        for label, row in NJIT_ROWS.items():
            yield from sides(label, NjitLoop(*row, ("mpi", NUMBA_MPI)), ranks, nodes, OVER_MPI)


FIGURES = {
    "test_over_tcp": over_tcp,
    "test_over_mpi": over_mpi,
    "test_njit_over_mpi": njit_over_mpi,
}


def test_over_tcp(record_figure):
    record_figure()


def test_over_mpi(record_figure):
    record_figure()


def test_njit_over_mpi(record_figure):
    record_figure()
