"""The stopping rules of a training, on numbers that are the same on all ranks."""

import numpy as np
from stage.problem import Problem

from training.plan import Options, Plan

SETTLED = 1e-9
"""An iteration whose cuts rise by less than this part of the bound, in all, found nothing new."""
PATIENCE = 2048
"""Sampled trajectories that must find nothing new before training stops by itself."""
BUDGET = 400_000
"""Stage problems the default number of iterations allows for, within `LEAST` and `MOST`."""
LEAST, MOST = 100, 2000


def default_iterations(problem: Problem, plan: Plan) -> int:
    """Return the largest number of iterations of a run without `--iterations`."""
    solves = plan.trajectories * int(problem.first[-1])
    walk = 10 * plan.paths // plan.trajectories
    return max(walk, min(MOST, max(LEAST, BUDGET // solves)))


class Stopping:
    """Judges every iteration; `reason` says why to stop, and is empty while training goes on.

    A point is settled if the cut computed there does not rise above the pool. If every path of a
    walked tree has been settled since the last rise, the policy is optimal. If paths are sampled,
    `PATIENCE` settled trajectories stop the run, which proves nothing but has not failed.
    """

    def __init__(self, problem: Problem, plan: Plan, options: Options) -> None:
        self.gap = options.gap
        self.exactly = options.iterations is not None
        self.left = options.iterations if self.exactly else default_iterations(problem, plan)
        self.calm = 0
        self.patience = -(-(plan.paths or PATIENCE) // plan.trajectories)
        self.settled = "every path settled" if plan.paths else "no new cuts"
        self.reason = "" if self.left else "iterations done"

    def note(self, line: np.void) -> None:
        """Count an iteration, by its record `line`, and set `reason` if a rule says stop."""
        bound = float(line["lower_bound"])
        upper = float(line["mean"] + line["half_width"])
        self.left -= 1
        self.calm = self.calm + 1 if line["gain"] <= SETTLED * abs(bound) else 0
        if self.calm >= self.patience and not self.exactly:
            self.reason = self.settled
        elif self.gap is not None and upper - bound <= self.gap * abs(upper):
            self.reason = "gap reached"
        elif self.left == 0:
            self.reason = "iterations done"
