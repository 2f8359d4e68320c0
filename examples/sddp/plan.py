"""How one training run is laid out: which rank walks which trajectory, and its arrays."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from compiled import PLAIN
from lp_state import Lp, allocate
from numba import njit
from problem import Problem
from sampling import count_paths, stride_of

OK, FORWARD, BACKWARD, BOUND = 0, 1, 2, 3
"""Phases an error can come from (`OK`: there is none)."""

LOWER, MEAN, HALF, CUTS, GAIN, PIVOTS, WALL, COMM = range(8)
"""Columns of a trace: lower bound; mean and 95 % half-width of the simulated cost; cuts so far;
largest improvements a cut made at its own point, summed over stages; simplex pivots; nanoseconds
in all and in collectives.
"""

COST, COUNTED, STATUS, STAGE, OPENING, TAIL = 0, 1, 2, 3, 4, 5
"""Fields after a trajectory's volumes: its cost; the weight of that cost in the mean (negative:
not counted); the outcome, and the stage and opening where it was not optimal. `TAIL`: how many."""


class Plan(NamedTuple):
    """Numbers of one run."""

    trajectories: int
    seed: int
    paths: int  # paths of the scenario tree if they are walked one by one, else 0
    stride: int
    mixed: int  # 1: every second trajectory explores


class Memory(NamedTuple):
    """Arrays of one rank, allocated once."""

    lp: Lp
    reference: Lp
    row: np.ndarray  # (H + 1,) work: coefficients of one cut
    mine: np.ndarray  # (block, T * H + TAIL) this rank's trajectories
    trial: np.ndarray  # (M, T * H + TAIL) all trajectories: incoming volume of every stage
    distinct: np.ndarray  # (M,) trajectories whose point of the present stage is new
    my_cuts: np.ndarray  # (block, H + 3) slopes, intercept, outcome, opening
    cuts: np.ndarray  # (M, H + 3)
    counts: np.ndarray  # (size,)
    displs: np.ndarray  # (size,)
    spare: np.ndarray  # (H,) end volumes nobody needs: those of the last stage
    first_cut: np.ndarray  # (H + 3,) as a row of `cuts`, for stage 0
    bound: np.ndarray  # (1,)
    stats: np.ndarray  # (2,) how many costs count; simplex pivots
    costs: np.ndarray  # (block,) what this rank adds to a sum over trajectories
    error: np.ndarray  # (4 + H,) phase, outcome, stage, opening, incoming volume


@njit(**PLAIN)
def block_start(items: int, rank: int, size: int) -> int:
    """Return the first item of `rank`: contiguous blocks, sizes differing by at most one."""
    return items * rank // size


@njit(**PLAIN)
def lay_out(items: int, width: int, counts: np.ndarray, displs: np.ndarray) -> None:
    """Fill counts and displacements, in elements, for `items` records of `width` over ranks."""
    size = counts.size
    for r in range(size):
        begin = block_start(items, r, size)
        counts[r] = (block_start(items, r + 1, size) - begin) * width
        displs[r] = begin * width


def make_plan(problem: Problem, trajectories: int | None, seed: int) -> Plan:
    """Return the plan; without `trajectories` it is the whole tree if that is small, else 16."""
    paths = count_paths(problem.first)
    if trajectories is None:
        trajectories = paths if 0 < paths <= 32 else 16
    uneven = any(np.ptp(problem.weight[a:b]) > 0 for a, b in pairwise(problem.first))
    return Plan(
        trajectories=trajectories,
        seed=seed,
        paths=paths,
        stride=stride_of(paths) if paths else 1,
        mixed=1 if uneven and not paths and trajectories > 1 else 0,
    )


def new_memory(problem: Problem, plan: Plan, size: int) -> Memory:
    """Return the arrays of one rank of `size`."""
    stages, hydros = problem.cost.shape[0], problem.start.size
    rows, columns = problem.a.shape
    width = stages * hydros + TAIL
    block = plan.trajectories // size + 1
    slots = 3 * hydros + 12
    trial = np.zeros((plan.trajectories, width))
    trial[:, : stages * hydros] = np.tile(problem.start, stages)
    return Memory(
        lp=allocate(rows, columns, slots, hydros + 1),
        reference=allocate(rows, columns, slots, hydros + 1),
        row=np.zeros(hydros + 1),
        mine=np.zeros((block, width)),
        trial=trial,
        distinct=np.zeros(plan.trajectories, np.int64),
        my_cuts=np.zeros((block, hydros + 3)),
        cuts=np.zeros((plan.trajectories, hydros + 3)),
        counts=np.zeros(size, np.int64),
        displs=np.zeros(size, np.int64),
        spare=np.zeros(hydros),
        first_cut=np.zeros(hydros + 3),
        bound=np.zeros(1),
        stats=np.zeros(2),
        costs=np.zeros(block),
        error=np.zeros(4 + hydros),
    )
