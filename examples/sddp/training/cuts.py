"""The cuts of a node in shared memory, and the points by which they are selected."""

from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
from stage.points import FIELDS, Points
from stage.pool import BLOCK, Pool

from training.growing import GrowingRows
from training.plan import Plan
from training.share import Setting

ROOM = 256
"""A new pool has room for so many cuts a stage, and a pool from a checkpoint for so many more."""


class SharedCuts:
    """A growing cut pool in a shared region.

    All ranks of the communicator create, load and close the pool, and make room in it, together.

    Attributes
    ----------
    pool : Pool
        Its `coef` is a view of the region; `count` starts at zero.
    memory : GrowingRows
        Fence its region after cuts were written and before they are read.
    """

    def __init__(self, setting: Setting) -> None:
        stages, hydros = setting.problem.cost.shape[0], setting.problem.start.size
        node, self.memory = setting.node, GrowingRows(setting, hydros + 1, ROOM)
        count, value = np.zeros(stages, np.int64), np.zeros(BLOCK)
        coef = self.memory.rows
        self.pool = Pool(coef, count, value, writer=node.rank, writers=node.size)

    def make_room(self, extra: int) -> None:
        """Make room for `extra` more cuts in every stage."""
        self.memory.make_room(int(self.pool.count.max()) + extra)
        self.pool = self.pool._replace(coef=self.memory.rows)

    def take_over(self, rows: np.ndarray, counts: np.ndarray) -> None:
        """Fill the pool with the first `counts` of `rows`, which come from an earlier region."""
        self.memory.move(rows, rows.shape[2])
        self.pool.count[:] = counts
        self.pool = self.pool._replace(coef=self.memory.rows)

    def load(self, counts: Sequence[int], file: BinaryIO | None) -> None:
        """Fill the pool of every node from `file`, which rank 0 alone reads."""
        self.make_room(max(counts) + ROOM)
        self.memory.load(counts, file)
        self.pool.count[:] = counts

    def close(self) -> None:
        """Close the region."""
        self.memory.close()


class SharedPoints:
    """The points at which cuts are compared, in a shared region; none if all cuts are kept.

    All ranks of the communicator create, load and close the points, and make room for them,
    together. The fence that makes the cuts visible makes the points visible too.

    Attributes
    ----------
    points : Points
        Its `at` is a view of the region; `seen` starts at zero.
    """

    def __init__(self, setting: Setting, plan: Plan, kept: np.ndarray) -> None:
        stages, hydros = setting.problem.cost.shape[0], setting.problem.start.size
        self._plan, self.memory = plan, GrowingRows(setting, hydros + FIELDS, min(plan.ring, ROOM))
        seen, place = np.zeros(stages, np.int64), np.zeros(0, np.int64)
        self.points = Points(self.memory.rows, seen, kept, place)

    @property
    def counts(self) -> list[int]:
        """The number of points that each stage has."""
        return [min(int(seen), self._plan.ring) for seen in self.points.seen]

    def make_room(self, pool: Pool) -> None:
        """Make room for the points of an iteration, and for the numbers of the cuts of `pool`."""
        if self._plan.ring == 0:
            return
        self.memory.make_room(min(max(self.counts) + self._plan.trajectories, self._plan.ring))
        place = self.points.place
        if place.size < pool.coef.shape[2]:
            place = np.zeros(pool.coef.shape[2], np.int64)
        self.points = self.points._replace(at=self.memory.rows, place=place)

    def load(self, seen: Sequence[int], pool: Pool, file: BinaryIO | None) -> None:
        """Fill the points of every node from `file`, if it has points; `pool` has the cuts."""
        self.points.seen[:] = seen
        self.make_room(pool)
        # `kept` says how many cuts of a stage are old. A rank writes this number for the stages in
        # which it will select.
        mine = slice(pool.writer, None, pool.writers)
        self.points.kept[mine] = pool.count[mine]
        self.memory.load(self.counts, file)

    def close(self) -> None:
        """Close the region."""
        self.memory.close()
