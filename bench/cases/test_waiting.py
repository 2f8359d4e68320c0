"""The cost of waiting: CPU time of a rank that waits 10 s, and barriers with too few cores.

*A rank waits 10 s* at a barrier for a rank that sleeps. The figure is the share of a core that the
waiting process uses, from Python and from @njit, beside MPI_Barrier in the same processes.

*Barrier, 8 ranks on 2 cores*, beside the context switches that the barrier needs. In a bare context
switch the kernel changes from one process to another on the same core. To time such switches, two
processes that are pinned to a core pass a word back and forth by futex(2). Between two barriers
each of the R ranks has to run once, so a barrier takes at least R switches, on all cores together.
So 1000 barriers are compared with 1000 * R switches. On each core, a pair of processes makes an
equal share of these switches.
"""

from bench.plan import PEER, Figure, Job
from bench.ranks.switches import SWITCHES, Crowd
from bench.ranks.waiting import LateRank

LATE_S = 10.0
CROWD = 8
CALLERS = {"python": "from Python", "njit": "in @njit"}


def late_figures():
    for caller, words in CALLERS.items():
        label = f"a rank waits {LATE_S:g} s over shm, {words}"
        asked = LateRank(caller, LATE_S)
        for side in ("shm", PEER):
            yield Figure(Job(2, "openmpi", "ranks.waiting"), asked, side, label, "wait")


def crowd_figures():
    sides = {"python": ["shm", PEER, SWITCHES], "njit": ["shm"]}
    job = Job(CROWD, "openmpi", "ranks.switches")
    for caller, words in CALLERS.items():
        label = f"barrier on 2 cores, {words}"
        for side in sides[caller]:
            yield Figure(job, Crowd(caller), side, label, "barrier of a crowd")


FIGURES = {"test_rank_that_waits": late_figures, "test_barrier_on_two_cores": crowd_figures}


def test_rank_that_waits(record_figure):
    record_figure()


def test_barrier_on_two_cores(record_figure):
    record_figure()
