"""The performance targets as data.

A target of the first table is a ratio of medians of the same run: our time / that of the fastest
peer. The other targets find their figures in the results by words of operation and label, by ranks
and by peer.
"""

from __future__ import annotations

from dataclasses import replace

from bench.peers import PEERS
from bench.plan import FRESH, IDEAL
from bench.report.data import Ratio, Results
from bench.report.outcomes import Either, Growth, Outcome, Target, fastest, with_ratio

# The rows are measured on this backend of ours, which is called from Python.
BACKEND = "shm"
OPERATIONS = {"barrier", "allreduce", "allgatherv", "broadcast", "sddp"}

# Each column: the number of ranks, and the setting. A target is judged in columns in which all data
# is fresh in each call.
COLUMNS = [(2, FRESH), (2, ""), (4, FRESH), (4, "")]
CROWDED = 0.85  # the limit with 4 ranks on 2 cores

# The label of each row, and its limit with 2 ranks.
ROWS = {
    "barrier": 0.8,
    "allreduce 8 B": 0.5,
    "allreduce 32 B": 0.5,
    "allreduce 4 KiB": 0.5,
    "allreduce 32 KiB": 0.9,
    "allreduce 512 KiB": 0.9,
    "allreduce 8 MiB": 0.9,
    "allgatherv 32 B": 0.9,
    "allgatherv 4 KiB": 0.9,
    "allgatherv 200 kB": 0.9,
    "allgatherv 12.9 MB": 0.9,
    "broadcast 10 kB": 0.9,
    "broadcast 2 MiB": 0.75,
    "broadcast 8 MiB": 0.75,
    "broadcast 64 MiB": 0.75,
    "one SDDP iteration": 0.9,
}


def grid(results: Results) -> dict[str, list[Outcome]]:
    """Return the first table: for each row, one outcome per column, beside the fastest peer."""
    return {label: [_cell(results, label, *column) for column in COLUMNS] for label in ROWS}


def _cell(results: Results, label: str, ranks: int, setting: str) -> Outcome:
    """Return one outcome of a row; a barrier has no data, so its one figure is judged."""
    if label == "barrier" and setting != FRESH:
        return Outcome(label, None, ranks)
    limit = (ROWS[label] if ranks == 2 else CROWDED) if setting == FRESH else None
    target = Outcome(label, limit, ranks)
    ratios = ratios_of(results, label, ranks, "" if label == "barrier" else setting)
    made = [with_ratio(replace(target, beside=peer), ratio) for peer, ratio in ratios.items()]
    return fastest(made) or target


def ratios_of(results: Results, label: str, ranks: int, setting: str) -> dict[str, Ratio]:
    """Return our time / the time of each peer, by the key of the peer."""
    found = results.find(label=label, ranks=ranks, setting=setting, backend=BACKEND)
    return {
        record.beside: record.ratio_to[PEERS[record.beside]]
        for record in found
        if record.operation in OPERATIONS and PEERS.get(record.beside) in record.ratio_to
    }


def _for_ranks(limits: dict[int, float], row: str, *args, **more) -> list[Target]:
    """Return a target for each number of ranks."""
    return [Target(row, limit, *args, ranks=n, **more) for n, limit in limits.items()]


OTHERS: dict[str, list[Target | Growth | Either]] = {
    "Calls": [
        *_for_ranks(
            {2: 0.25, 4: 0.25}, "njit allreduce 32 B / numba-mpi on its best MPI",
            ("njit", "allreduce", "32 B"), peer="numba-mpi", without=("+",), fastest=True,
        ),
        Target(
            "njit barrier / cache-line round trip", 0.8, ("njit", "barrier"),
            ranks=2, peer="ping-pong", without=("+",), fastest=True,
        ),
        Either((
            Target(
                "barrier from Python", 0.2, ("barrier barrier",), "µs", 2, "openmpi",
                without=("njit", "cores"),
            ),
            Target(
                "barrier from Python / Open MPI", 0.5, ("barrier barrier",), "", 2, "openmpi",
                peer="Open MPI", without=("njit", "cores"),
            ),
        )),
    ],
    "Results in regions": [
        *_for_ranks(
            {2: 1.1, 4: 1.2}, "allgatherv 200 kB into a region / memcpy limit",
            ("200 kB into a region",), peer="memcpy of", setting=FRESH,
        ),
        *_for_ranks(
            {2: 0.3, 4: 0.25}, "SDDP iteration, pool and trial points in regions / Open MPI",
            ("SDDP iteration", "in regions"), peer="Open MPI", setting=FRESH,
        ),
        Target(
            "allgatherv / distributed population + fence", 5, ("region", "populate"),
            peer="allgatherv", at_least=True, inverse=True,
        ),
    ],
    "Work shared out": [
        Target(
            "uneven items, claimed by last cost / the ideal", 1.05, ("uneven",), ranks=2, peer=IDEAL
        ),
    ],
    "The limit of memcpy": [
        Target(
            "allgatherv 12.9 MB / memcpy limit", 1.25, ("allgatherv 12.9 MB",), peer="memcpy",
            without=("region",), fastest=True,
        ),
    ],
    "Waiting": [
        Target(
            "a rank that waits for a late peer", 0.02, ("wait",), unit="cores",
            without=("over tcp", "over mpi"),
        ),
        Target(
            "barrier, 8 ranks / bare context switches", 3, ("barrier",),
            ranks=8, peer="context switch",
        ),
    ],
    "Starting": [
        Target("cold `cobre-comm run -n 4 hello_ranks.py`, shm", 5, ("start", "cold, shm"), "s"),
        Target("cold `cobre-comm run -n 4 hello_ranks.py`, tcp", 7, ("start", "cold, tcp"), "s"),
        Target("cold `cobre-comm run -n 4 hello_ranks.py`, mpi", 8, ("start", "cold, mpi"), "s"),
        Target("warm `cobre-comm run -n 4 hello_ranks.py`", 1.2, ("start", "warm"), "s"),
        Target("`make demo` on a fresh clone, without the download", 40, ("start", "demo"), "s"),
        Target("import cobre_comm", 0.35, ("start", "import"), unit="s"),
        Target("first collective, warm", 0.5, ("start", "first collective"), unit="s"),
    ],
    "Growth": [
        Growth(
            "allgatherv per byte, 256 MiB / 16 MiB", 1.3, ("allgatherv 16 MiB in all", 2),
            ("allgatherv 256 MiB in all", 2), per_byte=True,
        ),
        Growth("barrier, 16 ranks / 2 ranks", 8, ("barrier", 2), ("barrier", 16)),
    ],
}  # fmt: skip


def others(results: Results) -> dict[str, list[Outcome]]:
    """Return the outcomes of the targets outside the first table, by section."""
    return {
        section: [outcome for target in targets for outcome in target.outcomes(results)]
        for section, targets in OTHERS.items()
    }
