"""The stopping rules of a training, on numbers that are the same on all ranks."""

from collections import deque

import numpy as np
from stage.problem import Problem

from training.plan import Options, Plan

SETTLED = 1e-9
"""If the cuts of an iteration together rise by less than this part of the bound, none is new."""
PATIENCE = 2048
"""Sampled trajectories that must find nothing new before training stops by itself."""
BUDGET = 400_000
"""By default, training solves about so many stage problems, in `LEAST` to `MOST` iterations."""
LEAST, MOST = 100, 2000
ROUNDING = 1e-7
"""A simulated cost that chance does not affect may be below the bound by this part of the bound."""


def default_iterations(problem: Problem, plan: Plan) -> int:
    """Return the largest number of iterations of a run without `--iterations`."""
    solves = plan.trajectories * int(problem.first[-1])
    walk = 10 * plan.paths // plan.trajectories
    return max(walk, min(MOST, max(LEAST, BUDGET // solves)))


def is_below_bound(line: np.void) -> bool:
    """Return whether the interval of the fresh paths after an iteration is below the bound.

    No policy costs less than the bound. So either the sample has missed expensive paths, or the
    case or the bound is wrong.
    """
    bound, upper = line["lower_bound"], line["fresh_mean"] + line["fresh_half_width"]
    return bool(line["fresh_paths"] > 0.0 and upper < bound - ROUNDING * abs(bound))


def upper_end(line: np.void) -> float:
    """Return the cost that the policy exceeds only with a small chance, by its fresh paths.

    The true mean cost is not below the bound. So if the simulated mean is lower than the bound, the
    half-width is added to the bound. Otherwise a sample with a wide interval could seem close to
    the bound by chance.
    """
    mean = max(line["fresh_mean"], line["lower_bound"])
    return float(mean + line["fresh_half_width"])


def gap_of(line: np.void) -> float:
    """Return the relative gap between the bound and `upper_end`."""
    upper = upper_end(line)
    return float((upper - line["lower_bound"]) / max(abs(upper), 1e-300))


class Stopping:
    """Judges every iteration; `reason` says why to stop, and is empty while training continues.

    A point is settled if the cut computed there does not rise above the pool. If every path of a
    walked tree has been settled since the last rise, the policy is optimal. If paths are sampled,
    `PATIENCE` settled trajectories end the training. They do not prove that the policy is optimal,
    but this rule has not failed so far.

    The gap is reached if a sample of fresh paths says so (`training.sample`). If the interval of
    the sample is below the bound, the sample says nothing about the policy.
    """

    def __init__(self, problem: Problem, plan: Plan, options: Options) -> None:
        self.gap = options.gap
        self.exactly = options.iterations is not None
        self.left = options.iterations if self.exactly else default_iterations(problem, plan)
        self.calm = 0
        self.patience = -(-(plan.paths or PATIENCE) // plan.trajectories)
        self.settled = "every path settled" if plan.paths else "no new cuts"
        self.tolerance = options.stall_tolerance
        self.bounds = deque[float](maxlen=(options.stall_iterations or 0) + 1)
        self.reason = "" if self.left else "iterations done"

    def note(self, line: np.void) -> None:
        """Count an iteration, by its record `line`; set `reason` if a rule says stop."""
        bound = float(line["lower_bound"])
        self.bounds.append(bound)
        self.left -= 1
        self.calm = self.calm + 1 if line["gain"] <= SETTLED * abs(bound) else 0
        if self.calm >= self.patience and not self.exactly:
            self.reason = self.settled
        elif self._is_gap_reached(line):
            self.reason = "gap reached"
        elif self._is_stalled():
            self.reason = "bound stalled"
        elif self.left == 0:
            self.reason = "iterations done"

    def _is_gap_reached(self, line: np.void) -> bool:
        tested = self.gap is not None and line["fresh_paths"] > 0.0
        return tested and not is_below_bound(line) and gap_of(line) <= self.gap

    def _is_stalled(self) -> bool:
        """Return whether all bounds of so many latest iterations are alike."""
        if not 1 < self.bounds.maxlen == len(self.bounds):
            return False
        return max(self.bounds) - min(self.bounds) <= self.tolerance * abs(self.bounds[-1])
