"""The body of a job's ranks: they take one measurement after another."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module

from bench.plan import GLOO, Options
from bench.ranks.world import GlooWorld, MpiWorld, World


def take_all(comm, library: str, program: str, measurements: Sequence, options: Options) -> dict:
    """Return the result of each measurement.

    A wrong result becomes an entry ``error`` on all ranks, and the other measurements of the job
    stay valid. Any other exception ends the job.
    """
    del comm  # a job is started without a communicator: each side makes its own
    take = import_module(f"bench.{program}").take
    world = GlooWorld() if library == GLOO else MpiWorld()
    taken = [_result(take, world, measurement, options) for measurement in measurements]
    world.close()
    return {"measurements": taken}


def _result(take: Callable, world: World, measurement: object, options: Options) -> dict:
    error, result = "", {}
    try:
        result = take(world, measurement, options)
    except AssertionError:
        error = traceback.format_exc()
        print(error, file=sys.stderr, flush=True)
    on_any_rank = world.slowest(float(bool(error)))
    world.close_sides()
    return {**result, "error": error or "a wrong result on another rank" * bool(on_any_rank)}
