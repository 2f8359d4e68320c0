"""Does a communicator take the fastest way of a large call? Each way forced, and the free choice.

    python -m bench.studies ways [RANKS] [KEPT.json]

Over shared memory, from Python. The ways and the free choice take turns, block by block, on the
same buffers, with fresh data and with the same data. A block's time is that of the slowest rank.
Prints, of each operation and size, the median time of a call by each way, the way that the
communicator had chosen, and the time of the free choice over that of the fastest way.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from cobre_kernels.shm import ways

from cobre_comm.testing import run_ranks

RANKS = 2
KIB, MIB = 2**10, 2**20
SIZES = (64 * KIB, 512 * KIB, 2 * MIB, 8 * MIB, 64 * MIB)  # of one rank's block
MOST_BYTES = 256 * MIB  # that all ranks receive
BUFFERS, BLOCK_BYTES, MOST_CALLS, ROUNDS = 3, 16 * MIB, 50, 15
DEADLINE_S = 550


def operations(comm, count: int) -> dict[str, tuple[int, Callable, Callable]]:
    """Return, of each operation, its number of ways, a call, and a function that writes its data.

    ``count`` is the number of float64 of a block. The functions take the number of the call.
    """
    sends = [np.ones(count) for _ in range(BUFFERS)]
    recvs = [np.ones(count * comm.size) for _ in range(BUFFERS)]

    def broadcast(call: int) -> None:
        comm.broadcast(sends[call % BUFFERS])

    def gather(call: int) -> None:
        comm.allgather(sends[call % BUFFERS], recvs[call % BUFFERS])

    def renew(call: int) -> None:
        sends[call % BUFFERS][:] = call

    def renew_on_root(call: int) -> None:
        if comm.rank == 0:
            renew(call)

    return {"broadcast": (4, broadcast, renew_on_root), "allgatherv": (3, gather, renew)}


def block_s(comm, calls: int, call: Callable, renew: Callable | None) -> float:
    """Return the mean seconds of a call in a block; writing is not timed.

    The time of each call is that of its slowest rank, for which the next call would have to wait.
    """
    spent = 0.0
    for number in range(calls):
        if renew:
            renew(number)
        comm.barrier()
        began = time.perf_counter()
        call(number)
        spent += comm.max(time.perf_counter() - began)
    return spent / calls


def measure(comm) -> list[dict]:
    """Return a row of each operation, size and kind of data."""
    node, rows = comm._comm.node, []
    for nbytes in (size for size in SIZES if size * comm.size**2 <= MOST_BYTES * 2):
        calls = max(2, min(MOST_CALLS, BLOCK_BYTES // nbytes))
        for name, (count, call, renew) in operations(comm, nbytes // 8).items():
            for fresh in (True, False):
                node.forced_way = ways.FASTEST
                block_s(comm, ways.MOST_TRIED, call, renew if fresh else None)
                times: dict[int, list[float]] = {way: [] for way in (*range(count), ways.FASTEST)}
                for _ in range(ROUNDS):
                    for way, taken in times.items():
                        node.forced_way = way
                        taken.append(block_s(comm, calls, call, renew if fresh else None))
                us = {way: median(taken) * 1e6 for way, taken in times.items()}
                chosen = node.large[node.measured].way
                rows.append({
                    "operation": name, "bytes": nbytes, "fresh": fresh,
                    "us": {ways.NAMES[way]: us[way] for way in range(count)},
                    "chosen": ways.NAMES[chosen], "free_us": us[ways.FASTEST],
                })  # fmt: skip
    return rows


def main() -> None:
    """Measure, print a table, and keep the rows if a file is named."""
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else RANKS
    rows = run_ranks("shm", ranks, measure, timeout_s=DEADLINE_S)[0]
    titles = "".join(f"{name:>11}" for name in (*ways.NAMES, "chosen", "free"))
    print(f"{'':28}{titles}{'/ best':>8}")
    for row in rows:
        label = f"{row['operation']} {row['bytes'] // KIB} KiB{', fresh' * row['fresh']}"
        cells = "".join(f"{row['us'].get(name, float('nan')):11.1f}" for name in ways.NAMES)
        ratio = row["free_us"] / min(row["us"].values())
        print(f"{label:28}{cells}{row['chosen']:>11}{row['free_us']:11.1f}{ratio:8.2f}")
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(json.dumps(rows, indent=1))
