"""Items that take different times, shared out in three ways; each round has items of its own.

Each way does all items, and the time of a way is that of the slowest rank, including the resets
that the way needs. An item lasts until the clock says so, so the items of a round last equally long
in each way. The ideal time is not measured but computed: no way ends before the mean of the ranks'
shares has passed, nor before the largest item has passed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from cobre_kernels.machine.libc import monotonic_ns
from numba import njit

from bench.plan import EQUAL_SHARES, IDEAL, ONE_BY_ONE, Options
from bench.ranks.timing import timed
from cobre_comm import random

ITEMS = 200
SEED = 2026
SCHEDULED = Path("/proc/self/schedstat")
QUIET = 0.01  # a rank may have waited for a core for this part of the ideal time
ATTEMPTS = 12
# a sleep ends this long before the item ends, because the kernel wakes processes late
AWAKE_S = 2e-4


@dataclass(frozen=True)
class Uneven:
    """A measurement of this program: lognormal items.

    ``sigma`` is the standard deviation of the logarithms, ``total_s`` the sum of all items. Ranks
    keep their cores busy, or sleep (``sleeps``), so that more ranks than cores do items at once.
    """

    sigma: float
    total_s: float
    sleeps: bool


@njit(nogil=True)
def spin(ns):
    """Keep the core busy for ``ns`` nanoseconds."""
    end = monotonic_ns() + ns
    while monotonic_ns() < end:
        pass


@njit(nogil=True)
def spin_share(begin, end, ns, done):
    """Do the items of an equal share."""
    for item in range(begin, end):
        spin(ns[item])
        done[item] += 1


@njit(nogil=True)
def spin_claimed(work, ns, done):
    """Do the items that this rank gets."""
    item = work.claim()
    while item >= 0:
        spin(ns[item])
        done[item] += 1
        item = work.claim()


def sleep(ns):
    """Leave the core to others for ``ns`` nanoseconds."""
    end = time.monotonic_ns() + ns
    time.sleep(max(0.0, ns * 1e-9 - AWAKE_S))
    while time.monotonic_ns() < end:
        pass


def sleep_share(begin, end, ns, done):
    """Do the items of an equal share."""
    for item in range(begin, end):
        sleep(ns[item])
        done[item] += 1


def sleep_claimed(work, ns, done):
    """Do the items that this rank gets."""
    for item in work:
        sleep(ns[item])
        done[item] += 1


def lengths_ns(asked: Uneven, number: int) -> np.ndarray:
    """Return how long each item of a round takes; the sum is the same in every round."""
    key = random.key(SEED, number)
    lengths = np.exp(asked.sigma * random.normal(key, np.arange(ITEMS)))
    return (lengths * (1e9 * asked.total_s / lengths.sum())).astype(np.int64)


def ways(asked: Uneven, comm, work, done: np.ndarray) -> dict[str, Callable]:
    """Return the ways to do all items, in the order of a round; the last way knows all costs."""
    share = sleep_share if asked.sleeps else spin_share
    claimed = sleep_claimed if asked.sleeps else spin_claimed
    begin, end = (ITEMS * rank // comm.size for rank in (comm.rank, comm.rank + 1))

    def one_by_one(ns):
        work.reset()
        claimed(work, ns, done)

    def by_last_cost(ns):
        costs = work.measured_costs()
        work.reset(order=np.argsort(-costs, kind="stable"), costs=costs)
        claimed(work, ns, done)

    return {
        EQUAL_SHARES: lambda ns: share(begin, end, ns, done),
        ONE_BY_ONE: one_by_one,
        "shm": by_last_cost,
    }


def waited_s() -> float:
    """Return how long this rank has waited for a core so far."""
    return 1e-9 * int(SCHEDULED.read_text().split()[1])


def undisturbed(way: Callable, ns: np.ndarray, ideal_s: float, world) -> tuple[float, int]:
    """Return the slowest rank's seconds in the best attempt, and how many attempts there were."""
    attempts: list[tuple[float, float]] = []
    while len(attempts) < ATTEMPTS:
        world.slowest(0.0)
        before = waited_s()
        seconds, waited = timed(partial(way, ns)), waited_s() - before
        attempts.append((world.slowest(waited), world.slowest(seconds)))
        if min(attempts)[0] <= QUIET * ideal_s:
            break
    return min(attempts)[1], len(attempts)


def take(world, asked: Uneven, options: Options) -> dict:
    """Return the samples of each way, and the ideal times."""
    sides = (EQUAL_SHARES, ONE_BY_ONE, "shm", IDEAL)
    samples: dict[str, list[float]] = {side: [] for side in sides}
    done, times = np.zeros(ITEMS, np.int64), np.zeros(1, np.int64)
    with world.communicator("shm") as comm, comm.create_work(ITEMS) as work:
        made = ways(asked, comm, work, done)
        for way in made.values():
            way(np.zeros(ITEMS, np.int64))  # this call compiles
        done[:] = 0
        for number in range(options.rounds):
            ns = lengths_ns(asked, number)
            ideal_s = 1e-9 * max(ns.sum() / world.size, ns.max())
            samples[IDEAL].append(ideal_s)
            for name, way in made.items():
                seconds, attempts = undisturbed(way, ns, ideal_s, world)
                samples[name].append(seconds)
                times += attempts
        comm.allreduce(done, done)
    if not (done == times).all():
        raise AssertionError("an item was left out, or done twice")
    return {"samples_s": samples}
