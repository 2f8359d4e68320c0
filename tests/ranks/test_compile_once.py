"""All ranks of a test call a cached function at the same time; one of them compiles it."""

import numpy as np
from numba import njit

from cobre_comm.testing import run_ranks


@njit(cache=True)
def spread(values):
    """Return a number; numba compiles this for longer than the ranks' calls are apart."""
    return np.sort(values)[-1] - np.unique(values)[0]


def call_at_once(comm):
    comm.barrier()
    found = spread(np.arange(3.0))
    return found, sum(spread.stats.cache_misses.values())


def test_one_rank_compiles_and_the_other_one_loads(tmp_path):
    values = run_ranks("shm", 2, call_at_once, env={"NUMBA_CACHE_DIR": str(tmp_path)})
    assert sorted(values) == [(2.0, 0), (2.0, 1)]
