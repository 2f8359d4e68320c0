"""A user's cached function in one process after the other."""

import importlib
import pathlib
import sys

import numpy as np


def call_user_function(comm, folder):
    """Return (cache hits, cache misses, value) of a first call in this process."""
    sys.path.insert(0, folder)
    user = importlib.import_module("cached_user_module")
    assert pathlib.Path(user.__file__).parent == pathlib.Path(folder)
    send, recv = np.arange(3.0) + comm.rank, np.zeros(3)
    value = user.user_loop(comm, send, recv)
    expected = sum(np.arange(3.0) + rank for rank in range(comm.size))
    assert recv.tolist() == expected.tolist()
    stats = user.user_loop.stats
    return sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), value
