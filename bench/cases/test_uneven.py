"""Items that take different times: how long all of them take, beside the ideal.

An ideal program ends when each rank has had the same seconds of work, or when the largest item has
ended, whichever is later. The items are lognormal, and each round draws new items. A round does its
items in three ways, of which the last way is ours:

- *equal shares*: each rank has a block of equally many items;
- *one by one*: ranks claim items by `create_work`, in the order of their numbers;
- *by last cost*: ranks claim items, the longest first, by the `measured_costs` of the second way.

Two ranks keep two cores busy, in `@njit` code. Four ranks sleep, in Python, because four items
would not fit on two cores.
"""

from bench.plan import EQUAL_SHARES, IDEAL, ONE_BY_ONE, Figure, Job
from bench.ranks.uneven import ITEMS, Uneven

SIGMAS = (0.5, 1.0, 1.5, 2.0)
TOTALS_S = {2: 0.1, 4: 0.4}
SIDES = ("shm", EQUAL_SHARES, ONE_BY_ONE, IDEAL)


def figures():
    for ranks, total_s in TOTALS_S.items():
        job = Job(ranks, "openmpi", "ranks.uneven")
        for sigma in SIGMAS:
            asked = Uneven(sigma, total_s, sleeps=ranks > min(TOTALS_S))
            label = f"{ITEMS} items, sigma {sigma:g}"
            for side in SIDES:
                yield Figure(job, asked, side, label, "uneven")


FIGURES = {"test_uneven_items": figures}


def test_uneven_items(record_figure):
    record_figure()
