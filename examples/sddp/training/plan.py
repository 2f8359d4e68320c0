"""The plan of a training: its options, its numbers, and blocks of items."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from compiled import FROM_PYTHON
from numba import njit
from stage.problem import Problem

from training.interval import half_width_factor
from training.sampling import count_paths, stride_of

REMEMBERED = 2048
"""The number of points of each stage by which its cuts are selected."""


@dataclass(frozen=True)
class Options:
    """The options of a training.

    `iterations`: exactly this many, unless another rule stops the training before; if it is not
    given, until the case is settled. `trajectories`: forward trajectories per iteration, over all
    ranks; if it is not given, the whole scenario tree if the tree is small, else 16. `gap`: stop
    when the cost of fresh paths is this close to the bound, relatively (`training.stopping`).
    `checkpoint`: a file from which the training continues, if the file exists; it is written again
    after every `checkpoint_every` iterations and at the end. `select`: delete the cuts that are the
    highest at none of the latest points (`stage.points`): True from the first iteration on, False
    never, None in stages with more than `REMEMBERED` cuts. `time_limit`: stop after the iteration
    in which so many seconds have passed. `stall_iterations`: stop when the bound has moved by less
    than `stall_tolerance` of itself in so many iterations.
    """

    iterations: int | None = None
    trajectories: int | None = None
    seed: int = 0
    gap: float | None = None
    checkpoint: Path | None = None
    checkpoint_every: int = 10
    select: bool | None = None
    time_limit: float | None = None
    stall_iterations: int | None = None
    stall_tolerance: float = 1e-4


class Plan(NamedTuple):
    """The numbers that are fixed for a run."""

    trajectories: int
    seed: int
    paths: int  # how many paths the scenario tree has, if they are walked one by one; else 0
    stride: int
    mixed: int  # 1: every second trajectory explores
    ring: int  # points of a stage by which cuts are selected; 0: all cuts are kept
    spared: int  # while a stage has at most so many cuts, all are kept
    factor: float  # half an interval of the mean of an iteration's costs, in standard errors


class Block(NamedTuple):
    """The items of one rank: begin..end-1."""

    begin: int
    end: int


@njit(**FROM_PYTHON)
def block_of(items: int, rank: int, size: int) -> Block:
    """Return the items of `rank`; blocks are contiguous, and their sizes differ by at most one."""
    return Block(items * rank // size, items * (rank + 1) // size)


def make_plan(problem: Problem, options: Options) -> Plan:
    """Return the plan of a run."""
    paths, trajectories = count_paths(problem.first), options.trajectories
    if trajectories is None:
        trajectories = paths if 0 < paths <= 32 else 16
    uneven = any(np.ptp(problem.weight[a:b]) > 0 for a, b in pairwise(problem.first))
    mixed = 1 if uneven and not paths and trajectories > 1 else 0
    return Plan(
        trajectories=trajectories,
        seed=options.seed,
        paths=paths,
        stride=stride_of(paths) if paths else 1,
        mixed=mixed,
        ring=0 if options.select is False else REMEMBERED,
        spared=REMEMBERED if options.select is None else 0,
        factor=half_width_factor(trajectories - mixed * (trajectories // 2)),
    )
