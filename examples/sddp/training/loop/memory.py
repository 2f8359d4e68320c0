"""The memory of one rank in training: arrays allocated once, and the trace of the iterations."""

from typing import NamedTuple

import numpy as np
from simplex.state import MEASURES, Basis, Lp
from stage.points import Points
from stage.pool import Pool
from stage.problem import Problem
from stage.solve import new_program

from training.plan import Plan

NONE = -1
"""No item: a claim returns this when no item is left."""

OK, FORWARD, BACKWARD, BOUND, FRESH = 0, 1, 2, 3, 4
"""The phases of an error; `OK` stands for no error."""

COST, COUNTED, STATUS, STAGE, OPENING, LEFT = 0, 1, 2, 3, 4, 5
TAIL = LEFT + MEASURES
"""Fields after a trajectory's volumes: its cost; the weight of that cost in the mean (negative:
not counted); the outcome, stage and opening of the last solve, and from `LEFT` on the errors of its
solution (`Lp.measure`). `TAIL`: the number of these fields."""

OUTCOME, FAILED_AT, PRESENT, CUT_LEFT = 1, 2, 3, 4
CUT_TAIL = CUT_LEFT + MEASURES
"""Fields after a cut's slopes: the intercept; the outcome, and the opening of a solve that failed;
the value of the pool at the cut's own point, before the cuts of this iteration; from `CUT_LEFT` on
the errors of a solution that failed (`Lp.measure`). `CUT_TAIL`: the number of these fields."""

TRACE = np.dtype(
    [
        ("lower_bound", np.float64),
        ("mean", np.float64),  # the mean of the simulated cost
        ("half_width", np.float64),  # of the 95 % interval of the mean; NaN if a single cost counts
        ("cuts", np.float64),  # how many cuts the pool has
        ("gain", np.float64),  # the largest rise by a cut at its own point, summed over stages
        ("pivots", np.float64),  # pivots of the simplex, on all ranks
        ("wall_ns", np.float64),
        ("fresh_paths", np.float64),  # how many paths are simulated after the iteration; 0: none
        ("fresh_mean", np.float64),  # the mean of the cost of the fresh paths
        ("fresh_half_width", np.float64),  # of the interval by which the gap is judged
    ]
)
"""One iteration as training reports it."""


class Shared(NamedTuple):
    """Arrays that the ranks of a node share: members of `Memory`."""

    trial: np.ndarray
    cuts: np.ndarray
    references: Basis
    kept: np.ndarray  # `Points.kept`


class Memory(NamedTuple):
    """Arrays of one rank, allocated once."""

    lp: Lp
    near: Lp  # has the basis from which all points of a stage start in the backward pass
    references: Basis  # a stack of T: the reference basis of each stage, in shared memory
    known: np.ndarray  # (T, H) the volumes at which the forward pass computes the reference bases
    row: np.ndarray  # (H + 1,) work space: coefficients of one cut
    trial: np.ndarray  # (M, T * H + TAIL) trajectories, in shared memory: incoming volumes, tail
    cuts: np.ndarray  # (M, H + CUT_TAIL) cuts of one stage at their points, in shared memory
    new: np.ndarray  # (M,) 1: no earlier trajectory has the same point in the present stage
    rising: np.ndarray  # (M,) the cuts that enter the pool
    group: np.ndarray  # (M,) trajectories that this rank walks together
    ahead: np.ndarray  # (1,) an item that was claimed before its step began, or NONE
    # (size, 2) the first item of a node, and the item after its last: `Items.spans`
    spans: np.ndarray
    counts: np.ndarray  # (size,)
    displs: np.ndarray  # (size,)
    spare: np.ndarray  # (H,) end volumes of the last stage, which no stage uses
    first_cut: np.ndarray  # (H + CUT_TAIL,) like a row of `cuts`, but for stage 0
    bound: np.ndarray  # (1,)
    stats: np.ndarray  # (2,) how many costs count; simplex pivots
    costs: np.ndarray  # (M,) the terms of this rank in a sum over trajectories
    error: np.ndarray  # (4 + H,) phase, outcome, stage, opening, incoming volume
    left: np.ndarray  # (MEASURES,) the errors of the solution that failed


class Phases(NamedTuple):
    """The numbers of the phases of an iteration, to which a rank attributes its time."""

    forward: int
    backward: int
    bound: int
    select: int  # 0 if all cuts are kept


class State(NamedTuple):
    """The data of a training: problem, cuts and points, plan, memory and numbers of phases."""

    problem: Problem
    pool: Pool
    plan: Plan
    memory: Memory
    phases: Phases
    points: Points


def new_memory(problem: Problem, plan: Plan, shared: Shared, spans: np.ndarray) -> Memory:
    """Return the arrays of one rank."""
    stages, hydros = problem.cost.shape[0], problem.start.size
    return Memory(
        lp=new_program(problem),
        near=new_program(problem),
        references=shared.references,
        known=np.tile(problem.start, (stages, 1)),
        row=np.zeros(hydros + 1),
        trial=shared.trial,
        cuts=shared.cuts,
        new=np.zeros(plan.trajectories, np.int64),
        group=np.zeros(plan.trajectories, np.int64),
        ahead=np.full(1, NONE),
        spans=spans,
        rising=np.zeros(plan.trajectories, np.int64),
        counts=np.zeros(len(spans), np.int64),
        displs=np.zeros(len(spans), np.int64),
        spare=np.zeros(hydros),
        first_cut=np.zeros(hydros + CUT_TAIL),
        bound=np.zeros(1),
        stats=np.zeros(2),
        costs=np.zeros(plan.trajectories),
        error=np.zeros(4 + hydros),
        left=np.zeros(MEASURES),
    )
