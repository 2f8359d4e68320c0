"""``python -m tests.campaign.shrink``: ranks die at any moment, and the survivors continue.

Each job makes regions, fences and collectives, round after round, until the ranks that are to die
have died. A rank that gets ``CollectiveFailed`` calls ``shrink``. In the end each survivor has the
same members, which are the ranks that did not die. Then 100 collectives have the right results, and
no file is left. The ranks are forked from a process that has loaded the kernels.
"""

import argparse
import contextlib
import os
import random
import signal
import sys
import threading
import time
from typing import NamedTuple

import numpy as np

from cobre_comm import CollectiveFailed, create_communicator
from cobre_comm.testing.backend_name import BackendName
from cobre_comm.testing.cases.case import OURS
from cobre_comm.testing.cases.faults import steps
from cobre_comm.testing.cases.faults.strike import signal_in
from cobre_comm.testing.ranks.surroundings import rank_environment
from tests.campaign.__main__ import warm
from tests.campaign.surroundings import names
from tests.forked import fork, make_private_memory, outcome, struck_at

BACKENDS = {
    "shm": 6, "tcp": 2, "tcp:0,0,1,1": 3, "tcp:0,1,1,2": 2, "tcp-flat": 4, "tcp:0,0,0,1,1x2": 1,
}  # fmt: skip
CALLS, CALLS_AFTER = 40, 100
DEADLINE_S = 60.0
LIMIT_S = 20
FOREVER = 10**9
COLLECTIVE, FENCE, REGION, SHRINK, RETURNED = "collective", "fence", "region", "shrink", "returned"


class Death(NamedTuple):
    """How a rank dies: during what, and after how many calls of functions, or how many seconds."""

    during: str
    moment: float


class Loss(NamedTuple):
    """A job that loses ranks."""

    backend: str
    size: int
    caller: str
    deaths: dict  # of each rank that dies, its death
    stopped: dict  # of each rank that is stopped for a while, when: seconds from the start
    seed: int  # the seed of the steps


def draw(seed, index, backends=tuple(BACKENDS)):
    """Return the loss that a seed and a number give; it is the same at each call."""
    dice = random.Random(f"{seed} {index}")
    weights = [BACKENDS.get(name, 1) for name in backends]
    backend = dice.choices(backends, weights)[0]
    size = dice.choice([2, 3, 3, 4, 4, 5, 6, 7])
    victims = dice.sample(range(size), dice.randint(1, size - 1))
    deaths = {}
    for number, victim in enumerate(victims):
        during = dice.choice(
            [COLLECTIVE, FENCE, REGION, SHRINK, SHRINK, RETURNED][: 6 if number else 3]
        )
        if during in (COLLECTIVE, FENCE):
            moment = dice.choice([0.0, dice.uniform(0, 0.0005), dice.uniform(0, 0.01)])
        else:
            moment = int(10 ** dice.uniform(0, 3.3))
        deaths[victim] = Death(during, moment)
    alive = [rank for rank in range(size) if rank not in deaths]
    stopped = {dice.choice(alive): dice.uniform(0, 0.3)} if dice.random() < 0.1 else {}
    caller = dice.choice(["python", "njit", "mixed"])
    return Loss(backend, size, caller, deaths, stopped, dice.randrange(2**31))


@contextlib.contextmanager
def killed_at(moment):
    """Kill this process at its n-th call of a function, or else when the context ends."""
    try:
        with struck_at(moment, signal.SIGKILL):
            yield
    finally:
        os.kill(os.getpid(), signal.SIGKILL)


class Rank:
    """One rank of a job: it works until it dies, or until all ranks that are to die have died."""

    def __init__(self, loss, comm):
        self.loss, self.comm, self.me = loss, comm, comm.rank
        self.death = loss.deaths.get(comm.rank, Death("", FOREVER))
        self.spared = [rank for rank in range(loss.size) if rank not in loss.deaths]
        self.members = list(range(loss.size))
        self.steps = steps.steps(loss.seed, loss.size)

    def dies_in(self, during):
        """Return a context in which the rank is killed, if it is to die while it does this."""
        if during != self.death.during:
            return contextlib.nullcontext()
        if during in (COLLECTIVE, FENCE):
            signal_in(self.death.moment, signal.SIGKILL)
            return contextlib.nullcontext()
        return killed_at(self.death.moment)

    def go_on(self):
        """Work and shrink until all ranks that are to die have died; return the members."""
        is_broken = False
        while True:
            try:
                if is_broken:
                    is_broken = False
                    self.shrink()
                self.work()
                if self.members == self.spared:
                    self.collectives(CALLS_AFTER)
                    self.comm.close()
                    return self.members
            except CollectiveFailed:
                is_broken = True

    def shrink(self):
        with self.dies_in(SHRINK):
            made = self.comm.shrink()
        self.comm.close()
        self.comm, self.steps = made, steps.steps(self.loss.seed, made.size)
        with self.dies_in(RETURNED):
            rows = np.zeros(made.size, np.int64)
            made.allgather(np.array([self.me]), rows)
        self.members = rows.tolist()

    def work(self):
        with self.dies_in(REGION):
            region = self.comm.create_shared_region(self.comm.size)
        with self.dies_in(FENCE):
            for _ in range(20):
                region.fence()
        with self.dies_in(COLLECTIVE):
            self.collectives(CALLS)

    def collectives(self, count):
        """Take the next steps, and verify each of them."""
        for _ in range(count):
            steps.take(self.comm, next(self.steps), self.loss.caller)


def be_rank(loss, environment):
    os.environ.update(environment, **OURS.timeout_of(LIMIT_S))
    kind = BackendName.parse(loss.backend).kind
    return Rank(loss, create_communicator(kind)).go_on()


def perform(loss):
    """Run the job that has this loss; return its problems, and the seconds that the job took."""
    began = time.monotonic()
    before = names()
    environments = rank_environment(loss.backend, loss.size)
    ranks = [fork(be_rank, loss, environment) for environment in environments]
    pids = [pid for pid, _ in ranks]
    striker = threading.Thread(target=_stop_some, args=(loss, pids))
    striker.start()
    until = began + DEADLINE_S
    ends = [outcome(*rank, max(0.0, until - time.monotonic())) for rank in ranks]
    striker.join()
    spared = [rank for rank in range(loss.size) if rank not in loss.deaths]
    problems = []
    for rank, end in enumerate(ends):
        told = "\n".join([repr(end), *getattr(end, "__notes__", ())])
        if rank in loss.deaths and end != -signal.SIGKILL:
            problems.append(f"rank {rank} was to die, and ended with {told}")
        if rank not in loss.deaths and end != spared:
            problems.append(f"rank {rank} was to go on with {spared}, and ended with {told}")
    left = names() - before
    if left:
        problems.append(f"left in /dev/shm: {left}")
    return problems, time.monotonic() - began


def _stop_some(loss, pids):
    """Stop ranks, and continue them after a while; a rank that is stopped counts as alive."""
    for rank, at in loss.stopped.items():
        time.sleep(at)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pids[rank], signal.SIGSTOP)
            time.sleep(0.3)
            os.kill(pids[rank], signal.SIGCONT)


def main(words):
    """Perform losses; return how many of them had problems."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign.shrink", description=__doc__)
    parser.add_argument("--faults", type=int, default=200, help="how many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number to begin with")
    parser.add_argument("--backend", action="append", choices=list(BACKENDS))
    options = parser.parse_args(words)
    warm()
    if why_not := make_private_memory("2g"):
        print(why_not)
    backends = tuple(options.backend or BACKENDS)
    numbers = range(options.first, options.first + options.faults)
    misses, slowest = 0, 0.0
    for number in numbers:
        loss = draw(options.seed, number, backends)
        problems, took_s = perform(loss)
        slowest = max(slowest, took_s)
        if problems or options.faults == 1:
            print(number, loss, *problems, f"{took_s:.2f} s", sep="\n  ", flush=True)
        misses += bool(problems)
    print(f"{len(numbers)} losses, {misses} misses, the slowest took {slowest:.1f} s")
    return misses


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1:])))
