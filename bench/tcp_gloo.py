"""gloo (torch.distributed) on the cases of the tcp benchmarks; run with a Python that has torch.

    PYTHON bench/tcp_gloo.py [-n 2] [--rounds 15] [--block 0.05]

Needs nothing of cobre_comm but its cases. gloo reduces in place: the copy of ``send`` that makes it
the operation of the others is in its time.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
from functools import partial

from tcp_cases import CASES, Slot
from tcp_openmpi import MARK
from tcp_timing import measure


class Gloo:
    """Calls on torch.distributed's default group, on tensors that share the slots' memory."""

    in_rank_order = False

    def __init__(self, torch, distributed) -> None:
        self._tensor, self._group = torch.from_numpy, distributed
        self._ops = {"sum": distributed.ReduceOp.SUM, "min": distributed.ReduceOp.MIN}

    def bind(self, operation: str, slot: Slot | None):
        if slot is None:
            return self._group.barrier
        send, recv = self._tensor(slot.send), self._tensor(slot.recv)
        if operation == "broadcast":
            return partial(self._group.broadcast, send, 0)
        if operation == "allgatherv":
            return self._gather(send, recv, slot)
        return partial(self._reduce, send, recv, self._ops[operation])

    def _gather(self, send, recv, slot: Slot):
        if len(set(slot.counts.tolist())) > 1:
            raise ValueError(
                "gloo gathers blocks of one length only: choose another number of ranks"
            )
        newer = getattr(self._group, "all_gather_single", None)
        return partial(newer or self._group.all_gather_into_tensor, recv, send)

    def _reduce(self, send, recv, op) -> None:
        recv.copy_(send)
        self._group.all_reduce(recv, op)


def start_group() -> tuple:
    """Return torch.distributed with its default group, and the largest of a number on all ranks."""
    import torch
    import torch.distributed as distributed

    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    number = torch.zeros(1, dtype=torch.float64)

    def slowest(value: float) -> float:
        number[0] = value
        distributed.all_reduce(number, distributed.ReduceOp.MAX)
        return float(number[0])

    return distributed, slowest


def rank_main(rounds: int, block_s: float) -> None:
    import torch

    distributed, slowest = start_group()
    rank, size = distributed.get_rank(), distributed.get_world_size()
    side = {"gloo": Gloo(torch, distributed)}
    medians = {}
    for case in CASES:
        samples = measure(case, side, rank, size, slowest, rounds, block_s)["gloo"]
        medians[case.label] = statistics.median(samples) * 1e6
    distributed.barrier()
    if rank == 0:
        print(MARK + json.dumps({"torch": torch.__version__, "us": medians}), flush=True)
    distributed.destroy_process_group()


def group_environment(size: int) -> dict[str, str]:
    """Return the environment in which the ranks of a new group meet on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(size),
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
    }


def run(size: int) -> int:
    """Start the ranks with this script's own arguments; return the worst exit code."""
    common = group_environment(size)
    command = [sys.executable, *sys.argv, "--rank"]
    ranks = [subprocess.Popen(command, env={**common, "RANK": str(rank)}) for rank in range(size)]
    return max(abs(process.wait()) for process in ranks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=2, dest="size")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--block", type=float, default=0.05)
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.rank:
        sys.exit(run(options.size))
    rank_main(options.rounds, options.block)


if __name__ == "__main__":
    main()
