"""The samples of fresh paths by which the gap is judged: when a sample is drawn, and how large.

The forward passes of several iterations together are no sample, because each iteration simulates
another policy, and a single iteration has too few passes. So the present policy is simulated anew,
after some of the iterations. The names of a sample's draws depend on its iteration alone, whatever
happened before.
"""

from typing import TYPE_CHECKING

import numpy as np
from simplex.state import MEASURES
from stage.problem import Problem

from training.interval import mean_interval
from training.loop.fresh import OPENING, PATH, STAGE, STATUS, VOLUMES, no_failure, walk_fresh
from training.loop.memory import FRESH, NONE, Memory
from training.plan import Plan

if TYPE_CHECKING:
    from training.run import Run

FIRST = 8
"""The first iteration with a sample; the next are 12, 18, 27, ..., 1.5 times the one before."""

FEWEST = 128
"""Paths of the smallest sample."""

SHARE = 8
"""A sample may solve one stage problem for this many that the training has solved."""

DOUBT = 0.05
"""The chance that any sample of a training, however long, shows too low a cost."""

TOGETHER = 1024
"""A rank walks so many paths together, from stage to stage."""


def sample_number(iteration: int) -> int:
    """Return the number, from 1, of the sample after so many iterations; 0 if there is none."""
    due, number = FIRST, 1
    while due < iteration:
        due, number = due + (due + 1) // 2, number + 1
    return number if due == iteration else 0


def doubt_of(number: int) -> float:
    """Return the chance that sample `number` shows too low a cost; all chances sum to `DOUBT`."""
    return DOUBT / (number * (number + 1))


def paths_of(problem: Problem, plan: Plan, iteration: int) -> int:
    """Return how many paths the sample after so many iterations has."""
    stages = problem.cost.shape[0]
    solves = plan.trajectories * (stages + int(problem.first[-1] - problem.first[1]))
    return max(FEWEST, iteration * solves // (SHARE * stages))


def draw_sample(run: "Run", number: int, line: np.ndarray) -> bool:
    """Simulate sample `number` of the present policy into `line`, on all ranks.

    Returns
    -------
    bool
        False if a path could not continue; `memory.error` then says which, the same on all ranks.
    """
    comm, problem, iteration = run.setting.comm, run.setting.problem, len(run.trace) + 1
    count, hydros = paths_of(problem, run.plan, iteration), problem.start.size
    begin, end = comm.share(count)
    costs, failure = np.zeros(end - begin), no_failure(hydros)
    volumes, state = np.zeros((min(TOGETHER, end - begin), hydros)), run.state()
    for first in range(begin, end, TOGETHER):
        part = costs[first - begin : first - begin + TOGETHER]
        walk_fresh(state, iteration, first, volumes, part, failure)
    failures = np.zeros((comm.size, failure.size))
    comm.allgather(failure, failures)
    failed = failures[failures[:, PATH] != NONE]
    if len(failed):
        _copy_failure(failed[failed[:, PATH].argmin()], run.memory)
        return False
    mean, half_width = mean_interval(comm, costs, count, doubt_of(number))
    line["fresh_paths"], line["fresh_mean"], line["fresh_half_width"] = count, mean, half_width
    return True


def _copy_failure(failure: np.ndarray, memory: Memory) -> None:
    memory.error[:4] = FRESH, failure[STATUS], failure[STAGE], failure[OPENING]
    memory.error[4:] = failure[VOLUMES:-MEASURES]
    memory.left[:] = failure[-MEASURES:]
