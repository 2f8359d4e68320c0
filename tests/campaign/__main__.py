"""``python -m tests.campaign``: strikes real jobs with thousands of faults, and judges each job."""

import argparse
import functools
import gc
import itertools
import json
import math
import pathlib
import sys
import time
from dataclasses import asdict, replace
from functools import partial

from cobre_comm.testing.cases.faults.judge import promise_of
from cobre_comm.testing.cases.faults.kinds import LATE
from tests.campaign import page, surroundings
from tests.campaign.draw import draw
from tests.campaign.job import Result, perform
from tests.forked import each, load, make_private_memory

MOST_WORKERS = 3
FEW = 3000  # the number of faults among which `--each` chooses


def _arguments(words):
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("--faults", type=int, default=300, help="how many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--index", type=int, action="append", help="only this one, and its account")
    parser.add_argument(
        "--each", action="store_true", help="each kind once, and each promise on each backend"
    )
    parser.add_argument("--first", type=int, default=0, help="the number to begin with")
    parser.add_argument("--only", action="append", help="kinds that begin with this word")
    parser.add_argument("--backend", action="append", help="backends that begin with this word")
    parser.add_argument("--moment", action="append", help="moments that begin with this word")
    parser.add_argument("--large", action="store_true", help="only those in large calls")
    parser.add_argument("--start", action="append", help="hand, run or launch")
    parser.add_argument("--busy", type=int, default=0, help="processes that compute beside")
    parser.add_argument("--workers", type=int, default=MOST_WORKERS, help="jobs at a time")
    parser.add_argument("--minutes", type=float, default=0.0, help="end after so long")
    parser.add_argument(
        "--page", type=pathlib.Path, help="write the tables into their part of this page"
    )
    return parser.parse_args(words)


def chosen(options):
    """Return all faults that the options ask for, each with its number."""
    if options.index:
        return [(index, draw(options.seed, index)) for index in options.index]
    found, index, seen = [], options.first, set()
    last = options.first + FEW if options.each else math.inf
    while len(found) < options.faults and index < last:
        fault = draw(options.seed, index)
        new = traits(fault) - seen
        is_asked = (new or not options.each) and (fault.large_bytes or not options.large)
        if is_asked and all(
            not words or any(value.startswith(word) for word in words)
            for words, value in (
                (options.only, fault.kind), (options.backend, fault.backend),
                (options.start, fault.start), (options.moment, fault.moment),
            )
        ):  # fmt: skip
            found.append((index, fault))
            seen |= new
        index += 1
    return found


def traits(fault):
    """Return the traits of a fault; `--each` takes only faults that have a new trait."""
    waits = [item for item in fault.env.items() if item[0].startswith("COBRE_COMM_")]
    promise = promise_of(fault)
    return {fault.kind, fault.moment, (promise, fault.backend, fault.start), (promise, *waits)}


@functools.cache
def warm():
    """Load all modules of a rank, so that a fork of this process is a rank at once."""
    import numpy as np
    from cobre_kernels.machine.code import library
    from numba import from_dtype, typeof, types

    from cobre_comm import ReduceOp
    from cobre_comm.jit import types as jit_types
    from cobre_comm.testing.cases import calls
    from tests.campaign import work

    library()
    load()
    typeof(np.zeros(1))  # the first use of `typeof` asks for every type that an argument might have
    comm, table = jit_types.CommType(), types.int64[::1]
    for dtype in ("f8", "i8", "f4", "i4"):
        array = types.Array(from_dtype(np.dtype(dtype)), 1, "C")
        op = types.IntEnumMember(ReduceOp, types.int64)
        calls._COMPILED["allgatherv"].compile((comm, array, array, table, table))
        calls._COMPILED["allreduce"].compile((comm, array, array, op))
        calls._COMPILED["broadcast"].compile((comm, array, types.int64))
    calls._COMPILED["exact_sum"].compile((comm, types.float64[::1]))
    calls._COMPILED["barrier"].compile((comm,))
    work.reduce_on_last()


def alone(numbered, margin_s):
    """Perform one fault in a new process; return its result, or why the fault cannot strike here.

    The process has a /dev/shm of its own, so it neither sees nor removes files of other jobs.
    """
    index, fault = numbered
    tiny = fault.kind == "tiny_memory"
    refusal = make_private_memory(2 ** (12 + fault.seed % 15) if tiny else "2g")
    if tiny and refusal:
        return refusal
    surroundings.adopt_orphans()
    return perform(index, fault, margin_s)


def explain(result, seed):
    """Print a miss: its problems, the command that repeats it, and the accounts of all ranks."""
    lines = [f"\nMISS {result.fault.kind} on {result.fault.backend}: "
             f"python -m tests.campaign --seed {seed} --index {result.index}",
             *(f"    {problem}" for problem in result.verdict.problems),
             f"    {asdict(result.fault)}"]  # fmt: skip
    for rank, told in enumerate(result.accounts):
        lines.append(f"    rank {rank}: {json.dumps(told)}")
    lines += [f"    {line}" for line in result.output.splitlines()]
    print("\n".join(lines), flush=True)


def _not_too_short(fault, margin_s):
    """Return a fault with a limit so long that a slow rank on a busy machine is not late."""
    is_late = promise_of(fault) == LATE
    return replace(fault, limit_s=max(fault.limit_s, margin_s)) if is_late else fault


def main(words=None):
    options = _arguments(words)
    work = chosen(options)
    warm()
    beside = surroundings.busy(options.busy)
    margin_s = 0.5 * options.workers + surroundings.stretch() - 1.0
    print(f"{len(work)} faults, in time within 1 s and a margin of {margin_s:.1f} s", flush=True)
    work = [(index, _not_too_short(fault, margin_s)) for index, fault in work]
    found, broken, skipped = [], 0, []
    until = time.monotonic() + (60 * options.minutes or math.inf)
    gc.collect()
    gc.freeze()
    in_time = itertools.takewhile(lambda _: time.monotonic() < until, work)
    try:
        for (index, _), told in each(partial(alone, margin_s=margin_s), in_time, options.workers):
            if isinstance(told, str):
                skipped.append(told)
            elif isinstance(told, Result):
                found.append(told)
                if told.verdict.problems or options.index:
                    explain(told, options.seed)
                if len(found) % 100 == 0:
                    print(f"{len(found)} faults", flush=True)
            else:
                print(f"MISS: the process of fault {index} ended: {told!r}", flush=True)
                broken += 1
    finally:
        for process in beside:
            process.kill()
    page.report(found, broken, skipped, options)
    return int(broken > 0 or any(result.verdict.problems for result in found))


if __name__ == "__main__":
    sys.exit(main())
