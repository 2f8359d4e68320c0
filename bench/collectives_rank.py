"""One rank of a job: takes the measurements of a plan and writes them down. ``jobs.py`` starts it.

python bench/collectives_rank.py PLAN RESULTS
"""

from __future__ import annotations

import ctypes
import json
import signal
import sys
import traceback
from pathlib import Path

import numpy as np
from measurements import Measurement
from rank_sides import GlooWorld, MpiWorld
from tcp_cases import Work
from tcp_timing import Blocks, measure_blocks, single_calls

PR_SET_PDEATHSIG = 1  # prctl(2)
SINGLE_CALLS, SINGLE_S = 5000, 0.5  # single calls of a side: so many, but about so long at most


def end_with_parent() -> None:
    """Have Linux end this rank with its launcher: a rank that polls would do so for ever."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def take(measurement: Measurement, world, plan: dict) -> dict:
    """Return the samples of each entry, in their order; a wrong result is told, not raised.

    Other measurements of the job are as good as they were.
    """
    works = {
        str(index): Work(entry.case, world.side(entry.side), world.rank, world.size)
        for index, entry in enumerate(measurement.entries)
    }
    blocks = measure_blocks(works, world.slowest, plan["rounds"], plan["block_s"], plan["most_s"])
    told = {
        "samples_s": list(blocks.samples.values()),
        "block_calls": list(blocks.turns.values()),
    }
    if measurement.single:
        told["single"] = [single_series(works[name], blocks, name, world) for name in works]
    return told | {"error": wrong_results(works, world)}


def single_series(work: Work, blocks: Blocks, name: str, world) -> dict[str, float]:
    """Return percentiles of calls timed one by one, each as long as on its slowest rank."""
    count = int(SINGLE_S / np.median(blocks.samples[name]))
    calls = work.next_calls(max(100, min(SINGLE_CALLS, count)))
    world.slowest(0.0)
    taken = world.slowest_of_each(single_calls(calls))
    p50, p99 = np.percentile(taken, [50, 99])
    return {"p50_call_s": float(p50), "p99_call_s": float(p99), "single_calls": len(calls)}


def wrong_results(works: dict[str, Work], world) -> str:
    """Return what was wrong here, or that something was on another rank; empty if nothing was."""
    error = ""
    for work in works.values():
        try:
            work.verify()
        except AssertionError as wrong:
            error = f"rank {world.rank}: {wrong}"
            print(error, file=sys.stderr, flush=True)
    on_any = world.slowest(float(bool(error)))
    return error or "a wrong result on another rank, see its output" * bool(on_any)


def run(plan: dict, results: Path, world) -> None:
    taken = []
    for told in plan["measurements"]:
        measurement = Measurement.from_json(told)
        if world.rank == 0:
            print(measurement.label, flush=True)
        taken.append(take(measurement, world, plan))
    world.close()
    if world.rank == 0:
        results.write_text(json.dumps({"library": world.version, "measurements": taken}))


def main() -> None:
    end_with_parent()
    plan = json.loads(Path(sys.argv[1]).read_text())
    world = GlooWorld() if plan["library"] == "gloo" else MpiWorld()
    try:
        run(plan, Path(sys.argv[2]), world)
    except BaseException:
        traceback.print_exc()
        world.abort()


if __name__ == "__main__":
    main()
