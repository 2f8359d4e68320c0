"""The plan of a training: its options, its numbers, and blocks of items."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from compiled import FROM_PYTHON
from numba import njit
from stage.problem import Problem

from training.sampling import count_paths, stride_of

REMEMBERED = 2048
"""The number of points of each stage by which its cuts are selected."""


@dataclass(frozen=True)
class Options:
    """The options of a training.

    `iterations`: exactly this many, unless `gap` is reached before; without it, until the case is
    settled. `trajectories`: forward trajectories per iteration, over all ranks; without it, the
    whole scenario tree if that is small, else 16. `gap`: stop when the simulated mean plus its
    95 % half-width is this close to the bound, relatively. `checkpoint`: a file to go on from if it
    exists, written again after every so many iterations (`checkpoint_every`) and at the end.
    `select`: delete the cuts that are the highest at none of the latest points (`stage.points`).
    """

    iterations: int | None = None
    trajectories: int | None = None
    seed: int = 0
    gap: float | None = None
    checkpoint: Path | None = None
    checkpoint_every: int = 10
    select: bool = False


class Plan(NamedTuple):
    """Numbers of one run."""

    trajectories: int
    seed: int
    paths: int  # paths of the scenario tree if they are walked one by one, else 0
    stride: int
    mixed: int  # 1: every second trajectory explores
    ring: int  # points of a stage by which cuts are selected; 0: all cuts are kept


class Block(NamedTuple):
    """The items of one rank: begin..end-1."""

    begin: int
    end: int


@njit(**FROM_PYTHON)
def block_of(items: int, rank: int, size: int) -> Block:
    """Return the items of `rank`: contiguous blocks, sizes differing by at most one."""
    return Block(items * rank // size, items * (rank + 1) // size)


def make_plan(problem: Problem, options: Options) -> Plan:
    """Return the plan of a run."""
    paths, trajectories = count_paths(problem.first), options.trajectories
    if trajectories is None:
        trajectories = paths if 0 < paths <= 32 else 16
    uneven = any(np.ptp(problem.weight[a:b]) > 0 for a, b in pairwise(problem.first))
    return Plan(
        trajectories=trajectories,
        seed=options.seed,
        paths=paths,
        stride=stride_of(paths) if paths else 1,
        mixed=1 if uneven and not paths and trajectories > 1 else 0,
        ring=REMEMBERED if options.select else 0,
    )
