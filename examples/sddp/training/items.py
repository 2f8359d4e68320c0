"""What the ranks share out in an iteration, and the memory of a node for the results.

The forward pass is step 0. Steps 1 to T - 1 are the backward pass: step s computes cuts of stage T
- s. Item m * T + s is trajectory m in step s. A node has a block of items. So it has a block of
trajectories in each step, nearly the same in all steps, and its ranks claim the items of a step in
the order of trajectories.
"""

import math
from typing import Any

import numpy as np
from simplex.state import basis_words, stacked
from stage.problem import Problem
from stage.solve import new_program

from training.loop.memory import CUT_TAIL, TAIL, Shared
from training.plan import Plan


class Items:
    """The items of an iteration, and their results in a shared region.

    All ranks create it, begin each iteration and close it together.

    Attributes
    ----------
    work : Work
        Which item a rank gets next.
    region : SharedRegion
        Fence it after results were written and before they are read.
    shared : Shared
        Views of the region. `trial` and `cuts` have a row for each trajectory: its record, and its
        cut of the present stage.
    spans : ndarray of int64, shape (size, 2)
        For each leader, the first item of its node and the item after the last; for a follower
        zeros.
    """

    def __init__(self, comm: Any, problem: Problem, plan: Plan) -> None:
        (stages, hydros), rows = (problem.cost.shape[0], problem.start.size), plan.trajectories
        lp = new_program(problem)
        shapes = (
            (rows, stages * hydros + TAIL),
            (rows, hydros + CUT_TAIL),
            (max(stages, 2), basis_words(lp)),  # numba has another type for a stack of one basis
            (stages,),
        )
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        self.region = comm.create_shared_region(int(ends[-1]), np.float64)
        views = np.split(self.region.part(0, self.region.count), ends[:-1])
        trial, cuts, room, kept = (v.reshape(s) for v, s in zip(views, shapes, strict=True))
        self.shared = Shared(trial, cuts, stacked(lp, room), kept)
        self.work = comm.create_work(rows * stages)
        self._by_steps = np.arange(rows * stages).reshape(rows, stages).T.ravel()
        self.spans = np.zeros((comm.size, 2), np.int64)
        own = (self.work.start, self.work.stop) if comm.is_leader else (0, 0)
        comm.allgather(np.array(own), self.spans)

    def begin(self) -> None:
        """Let ranks claim the items of another iteration."""
        self.work.reset(order=self._by_steps)

    def close(self) -> None:
        """Close the work and the region."""
        self.work.close()
        self.region.close()
