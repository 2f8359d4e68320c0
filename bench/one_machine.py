"""Our collectives beside Open MPI's (or MPICH's), from Python and in @njit loops, on one machine.

Both communicators live in the same processes and take turns, so a busy machine disturbs both alike:
read the ratios. Each result is verified after it is timed.

    python bench/one_machine.py [-n 2] [--mpi openmpi|mpich] [--rounds 9] [--json FILE] [--quick]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

MARK = "COBRE_BENCH_RESULT "


def cases(size: int, quick: bool) -> list[tuple[str, str, int, int]]:
    """Return (label, operation, bytes per rank, calls per round)."""
    calls = 0.3 if quick else 1.0
    fast = int((20000 if size <= 2 else 2000) * calls)
    return [
        ("barrier", "barrier", 0, fast),
        ("allreduce 8 B", "allreduce", 8, fast),
        ("allreduce 32 B", "allreduce", 32, fast),
        ("allreduce 4 KiB", "allreduce", 4096, fast // 4),
        ("allreduce 32 KiB", "allreduce", 32768, fast // 10),
        ("allreduce 512 KiB", "allreduce", 524288, max(fast // 100, 5)),
        ("allreduce 8 MiB", "allreduce", 8 * 2**20, max(fast // 2000, 3)),
        ("allgatherv 32 B", "allgatherv", 32, fast),
        ("allgatherv 4 KiB", "allgatherv", 4096, fast // 4),
        ("allgatherv 200 kB", "allgatherv", 200_000, max(fast // 40, 10)),
        ("allgatherv 12.9 MB", "allgatherv", 12_900_000, max(fast // 4000, 2)),
        ("broadcast 10 kB", "broadcast", 10_000, fast // 4),
        ("broadcast 8 MiB", "broadcast", 8 * 2**20, max(fast // 2000, 3)),
    ]


class Ours:
    """Calls on a cobre_comm communicator."""

    def __init__(self, comm):
        self._comm = comm
        self.barrier, self.allreduce = comm.barrier, comm.allreduce
        self.allgatherv, self.broadcast = comm.allgatherv, comm.broadcast


class Theirs:
    """The same calls on mpi4py's COMM_WORLD."""

    def __init__(self, mpi):
        world = mpi.COMM_WORLD
        self.barrier = world.Barrier
        self.allreduce = world.Allreduce
        self._world, self._double = world, mpi.DOUBLE

    def allgatherv(self, send, recv, counts, displs):
        self._world.Allgatherv(send, [recv, counts, displs, self._double])

    def broadcast(self, buf):
        self._world.Bcast(buf, 0)


def make_call(side, operation: str, nbytes: int, rank: int, size: int):
    """Return a call without arguments, and a check of what it leaves behind."""
    count = nbytes // 8
    send = np.arange(count, dtype=np.float64) + rank
    if operation == "barrier":
        return side.barrier, lambda: True
    if operation == "allreduce":
        recv = np.empty(count)
        expected = size * np.arange(count) + size * (size - 1) / 2
        return lambda: side.allreduce(send, recv), lambda: np.array_equal(recv, expected)
    if operation == "broadcast":
        return lambda: side.broadcast(send), lambda: np.array_equal(send, np.arange(count))
    recv = np.empty(count * size)
    counts = np.full(size, count, dtype=np.int64)
    displs = np.arange(size, dtype=np.int64) * count
    expected = np.concatenate([np.arange(count) + r for r in range(size)])

    def check() -> bool:
        return np.array_equal(recv, expected)

    return lambda: side.allgatherv(send, recv, counts, displs), check


def timed(call, calls: int) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - began) / calls * 1e6


def njit_loop_us(comm, calls: int) -> float:
    """Microseconds of one allreduce of four float64 and one barrier inside @njit."""
    from numba import njit

    @njit(nogil=True)
    def loop(comm, send, recv, calls):
        for _ in range(calls):
            comm.allreduce(send, recv)
            comm.barrier()

    send, recv = np.arange(4.0), np.empty(4)
    loop(comm, send, recv, 10)
    samples = []
    for _ in range(5):
        comm.barrier()
        began = time.perf_counter()
        loop(comm, send, recv, calls)
        samples.append((time.perf_counter() - began) / calls * 1e6)
    assert np.array_equal(recv, comm.size * np.arange(4.0))
    return statistics.median(samples)


def rank_main(rounds: int, quick: bool) -> None:
    from mpi4py import MPI

    from cobre_comm import ShmConfig, create_communicator

    world = MPI.COMM_WORLD
    rank, size = world.rank, world.size
    name = world.bcast(f"/cobre-bench-{os.getpid()}", 0)
    comm = create_communicator(ShmConfig(name=name, rank=rank, size=size, spin_us=spin_us(size)))
    sides = {"ours": Ours(comm), "theirs": Theirs(MPI)}
    rows = []
    for label, operation, nbytes, calls in cases(size, quick):
        made = {k: make_call(side, operation, nbytes, rank, size) for k, side in sides.items()}
        samples: dict[str, list[float]] = {k: [] for k in sides}
        for _ in range(rounds):
            for key, (call, _) in made.items():
                for _ in range(2):
                    call()
                samples[key].append(timed(call, calls))
        assert all(check() for _, check in made.values()), label
        ratios = [o / t for o, t in zip(samples["ours"], samples["theirs"], strict=True)]
        rows.append(
            {
                "case": label,
                "ours_us": statistics.median(samples["ours"]),
                "theirs_us": statistics.median(samples["theirs"]),
                "ratio": statistics.median(ratios),
            }
        )
    loop_us = njit_loop_us(comm, 100_000 if size <= 2 else 10_000)
    if rank == 0:
        library = MPI.Get_library_version().splitlines()[0].split(",")[0]
        print(MARK + json.dumps({"ranks": size, "mpi": library, "rows": rows, "njit_us": loop_us}))


def spin_us(size: int) -> float:
    """Our default, judged by the machine: mpiexec may have bound this rank to one core."""
    return 30.0 if size <= (os.cpu_count() or 1) else 0.0


def run(size: int, mpi: str, rounds: int, quick: bool) -> dict:
    prefix = Path(sys.prefix)
    binary = prefix / "bin" / ("prterun" if mpi == "openmpi" else "mpiexec.hydra")
    root = ("OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT")
    environment = {
        **os.environ,
        "MPI4PY_MPIABI": mpi,
        "LD_LIBRARY_PATH": str(prefix / "lib"),
        **{name: str(prefix) for name in ("OPAL_PREFIX", "PRTE_PREFIX", "PMIX_PREFIX")},
        **{name + tail: "1" for name in root for tail in ("", "_CONFIRM")},
    }
    command = [str(binary), "-n", str(size)]
    if mpi == "openmpi" and size > (os.cpu_count() or 1):
        command += ["--map-by", ":OVERSUBSCRIBE"]
    command += [sys.executable, __file__, "--rank", "--rounds", str(rounds)]
    command += ["--quick"] if quick else []
    output = subprocess.run(
        command, env=environment, check=True, stdout=subprocess.PIPE, text=True, timeout=900
    ).stdout
    line = next(line for line in output.splitlines() if MARK in line)
    return json.loads(line[line.index(MARK) + len(MARK) :])


def report(result: dict) -> str:
    lines = [
        f"{result['ranks']} ranks, beside {result['mpi']} (medians; ratio = ours / theirs)",
        "",
        "| | ours, us | theirs, us | ratio |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {r['case']} | {r['ours_us']:.2f} | {r['theirs_us']:.2f} | {r['ratio']:.2f} |"
        for r in result["rows"]
    ]
    loop = f"{result['njit_us']:.3f} us"
    lines += ["", f"@njit loop, allreduce of 4 float64 and barrier: {loop} per iteration"]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=2, dest="size")
    parser.add_argument("--mpi", choices=["openmpi", "mpich"], default="openmpi")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        rank_main(options.rounds, options.quick)
        return
    result = run(options.size, options.mpi, options.rounds, options.quick)
    print(report(result))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
