"""The cost of waiting: CPU time of a rank that waits 10 s, and barriers with too few cores.

*A rank waits 10 s* at a barrier for one that sleeps. The figure is the share of a core that its
process uses meanwhile, from Python and from @njit, beside MPI_Barrier in the same processes. Over
mpi the two ranks are pretended to be on two nodes, because on one they would wait as over shm.

*Barrier, 8 ranks on 2 cores*, beside the context switches that it needs. In a bare context switch
the kernel changes from one process to another on the same core. Two processes that are pinned to a
core and hand a word back and forth by futex(2) measure it. Between two barriers each of the R ranks
has to run once, so a barrier takes at least R switches, on all cores together. So 1000 barriers are
compared with 1000 * R switches. Side "context switches" spreads them over the cores, with a pair of
processes on each. On side "context switches on one core" one pair does them all.
"""

from bench.cases.grid import parametrize
from bench.peers import LIBRARIES
from bench.plan import PEER, Figure, Job
from bench.ranks.switches import ON_ONE_CORE, SWITCHES, Crowd
from bench.ranks.waiting import LateRank

LATE_S = 10.0
CROWD = 8
CALLERS = {"python": "from Python", "njit": "in @njit"}
NODES = {"shm": "", "tcp": "", "mpi": "0,1"}


def late_figures(full: bool):
    for library in LIBRARIES if full else ["openmpi"]:
        for backend in NODES if full else ["shm"]:
            job = Job(2, library, "ranks.waiting", NODES[backend])
            for caller, words in CALLERS.items():
                label = f"a rank waits {LATE_S:g} s over {backend}, {words}"
                asked = LateRank(backend, caller, LATE_S)
                yield from (Figure(job, asked, side, label, "wait") for side in (backend, PEER))


def crowd_figures(full: bool):
    sides = {"python": ["shm", PEER, SWITCHES, ON_ONE_CORE], "njit": ["shm"]}
    for library in LIBRARIES if full else ["openmpi"]:
        job = Job(CROWD, library, "ranks.switches")
        for caller, words in CALLERS.items():
            label = f"barrier on 2 cores, {words}"
            for side in sides[caller]:
                yield Figure(job, Crowd(caller), side, label, "barrier of a crowd")


FIGURES = {"test_rank_that_waits": late_figures, "test_barrier_on_two_cores": crowd_figures}


def pytest_generate_tests(metafunc):
    made = FIGURES[metafunc.function.__name__]
    parametrize(metafunc, made(metafunc.config.getoption("full")))


def test_rank_that_waits(record_figure):
    record_figure()


def test_barrier_on_two_cores(record_figure):
    record_figure()
