"""All ranks take the fastest way for large calls, and ``comm.stats()`` tells which way it is."""

import os
from types import SimpleNamespace

import numpy as np
import pytest
from cobre_kernels.collective.comm import LARGE_ROWS
from cobre_kernels.shm import ways

from cobre_comm import Stats, WayStats, objects
from cobre_comm.journal.stats import SLOTS_ONLY

BROADCAST_CALLS = ways.MOST_TRIED  # until the fastest way is known
ALLGATHERV_CALLS = ways.TRIALS * len(ways.NAMES) + 1
NBYTES = 2**17 + 2**16  # in a broadcast, and of the largest block in an allgatherv
SEED, MANY = 7, 2500  # the seed and the calls of the long test
SIZES = (4 * 2**10, 2**16, 2**16 + 4099, 2**18)  # the first is small; the next two share a row
OFTEN = (0.1, 0.36, 0.4, 0.14)


def gather_blocks(comm, size):
    """Gather blocks of which the last is the largest; check every byte."""
    counts = [size // 2] * (comm.size - 1) + [size]
    displs = np.cumsum([0, *counts[:-1]])
    send, recv = np.full(counts[comm.rank], comm.rank, np.uint8), np.zeros(sum(counts), np.uint8)
    comm.allgatherv(send, recv, counts, displs)
    np.testing.assert_array_equal(recv, np.repeat(np.arange(comm.size, dtype=np.uint8), counts))


def broadcast(comm, size, root, number):
    buf = np.full(size, number % 251 if comm.rank == root else 255, np.uint8)
    comm.broadcast(buf, root)
    assert np.all(buf == number % 251)


@pytest.mark.ranks(2, 3, backends=["shm", "tcp"])
def test_statistics_have_the_fastest_way_of_each_operation(comm):
    assert comm.stats().ways == ()
    broadcast(comm, NBYTES, 0, 0)
    if comm.stats().slots_only:
        pytest.skip("the system does not permit it")
    assert comm.stats().ways == (WayStats("broadcast", 2**17, 1, "trying", {}),)
    for number in range(1, BROADCAST_CALLS):
        broadcast(comm, NBYTES, number % comm.size, number)
    for _ in range(ALLGATHERV_CALLS + 5):
        gather_blocks(comm, NBYTES)
    found = comm.stats().ways
    assert [each[:3] for each in found] == [
        ("broadcast", 2**17, BROADCAST_CALLS), ("allgatherv", 2**17, ALLGATHERV_CALLS + 5),
    ]  # fmt: skip
    assert [tuple(each.seconds) for each in found] == [ways.NAMES, ways.NAMES[:3]]
    for each in found:
        assert 0 < each.seconds[each.way] < ways.LEAST_GAIN * min(each.seconds.values()) + 1e-9
    assert objects.broadcast(comm, found) == found


@pytest.mark.ranks(2)
def test_statistics_tell_that_the_system_denies_it(comm):
    broadcast(comm, NBYTES, 0, 0)
    if comm.rank == 1:
        comm._comm.node.reading.own.pid = os.getppid()
    for number in range(2 * BROADCAST_CALLS):
        broadcast(comm, NBYTES, number % comm.size, number)
    stats = comm.stats()
    assert stats.slots_only
    assert [tuple(each.seconds) for each in stats.ways] == [("slots", "streamed")]
    assert repr(stats).splitlines()[-1] == SLOTS_ONLY


def test_the_table_of_ways():
    seconds = {"slots": 2.1e-3, "read": 1.3e-3, "both ends": 1.2e-3}
    found = WayStats("broadcast", 2**23, 60, "both ends", seconds)
    tried = WayStats("allgatherv", 2**16, 7, "trying", {})
    assert repr(Stats(0, 2, {}, ways=(found, tried))).splitlines()[-3:] == [
        "large call  at least  calls        way   slots    read  both ends",
        "broadcast      8 MiB     60  both ends  2.1 ms  1.3 ms     1.2 ms",
        "allgatherv    64 KiB      7     trying       -       -          -",
    ]


def rows_of(comm):
    """Return the numbers in the rows of large calls that should be equal on all ranks."""
    rows = [comm._comm.node.large[number] for number in range(LARGE_ROWS)]
    return np.array(
        [
            [row.ways, row.calls, row.until, row.way, row.began_ns]
            + [row.tried[way].fastest_ns for way in range(len(ways.NAMES))]
            + [row.tried[way].second_ns for way in range(len(ways.NAMES))]
            for row in rows
        ]
    )


def check_rows(comm):
    """Check that all ranks have equal rows, and that each row has the cheapest way."""
    own = rows_of(comm)
    everyone = np.empty((comm.size, *own.shape), own.dtype)
    comm.allgather(own, everyone)
    assert np.all(everyone == own)
    for number in range(LARGE_ROWS):
        row = comm._comm.node.large[number]
        if row.calls > ways.TRIALS * (1 + row.ways):
            costs = [row.tried[way].second_ns for way in range(row.ways)]
            assert min(costs) > 0
            assert costs[row.way] <= ways.LEAST_GAIN * min(costs)


@pytest.mark.slow
@pytest.mark.ranks(2, 3, 4, backends=["shm", "tcp"], timeout=200)
def test_all_ranks_have_equal_rows_after_thousands_of_calls(comm):
    drawn = np.random.default_rng(SEED)
    for number in range(MANY):
        size, kind, root = drawn.choice(SIZES, p=OFTEN), drawn.random(), drawn.integers(comm.size)
        if kind < 0.55:
            broadcast(comm, int(size), int(root), number)
        elif kind < 0.8:
            gather_blocks(comm, int(size))
        else:
            assert comm.sum(number) == comm.size * number
        if number % 100 == 0:
            check_rows(comm)
    check_rows(comm)


# The way before trials, the time of each way, and the way and the calls until the next trials.
DECISIONS = {
    "the same way": (2, (900, 950, 500, 510), (2, 32 * 8 * (400 + 450 + 10) // 500)),
    "too little gain": (3, (900, 950, 500, 510), (3, 32 * 8 * (390 + 440 - 10) // 510)),
    "slow trials": (0, (100, 1100, 1100, 1100), (0, 32 * 8 * 30)),
    "all are as fast": (1, (500, 500, 500, 500), (1, 128)),
    "another way": (0, (900, 950, 700, 400), (3, 32 * 8 * (500 + 550 + 300) // 400)),
    "the first of two": (3, (400, 401, 700, 600), (0, 32 * 8 * (1 + 300 + 200) // 400)),
}


@pytest.mark.parametrize("case", DECISIONS.values(), ids=DECISIONS)
def test_the_fastest_way_is_taken_until_trials_have_paid_off(case):
    way, times, expected = case
    tried = [SimpleNamespace(second_ns=time) for time in times]
    row = SimpleNamespace(way=way, until=0, ways=len(times), tried=tried)
    ways._decide.py_func(row)
    assert (row.way, row.until) == expected
