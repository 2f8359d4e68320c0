"""The cuts of a node in shared memory: one copy, which the ranks of the node write together."""

from typing import Any, BinaryIO

import numpy as np
from stage.pool import BLOCK, Pool

from training.plan import block_of
from training.share import Setting

ROOM = 256
"""Room of a new pool, in cuts a stage; a pool from a checkpoint has as much to spare."""


class SharedCuts:
    """A cut pool in a shared region, which grows.

    All ranks of the communicator create it, make room, load and close it together.

    Attributes
    ----------
    pool : Pool
        Its `coef` is a view of the region; `count` starts at zero.
    region : SharedRegion
        Fence it after cuts were written and before they are read.
    """

    def __init__(self, setting: Setting) -> None:
        stages, hydros = setting.problem.cost.shape[0], setting.problem.start.size
        self._comm, node = setting.comm, setting.node
        self.region, coef = self._allocate(stages, hydros + 1, ROOM)
        count, value = np.zeros(stages, np.int64), np.zeros(BLOCK)
        self.pool = Pool(coef, count, value, writer=node.rank, writers=node.size)

    def _allocate(self, stages: int, width: int, capacity: int) -> tuple[Any, np.ndarray]:
        region = self._comm.create_shared_region((stages, width, capacity))
        return region, region.block(0, stages)

    def make_room(self, extra: int) -> None:
        """Make room for `extra` more cuts in every stage; each rank moves its share of the rows."""
        old, old_region = self.pool.coef, self.region
        stages, width, capacity = old.shape
        needed = int(self.pool.count.max()) + extra
        if needed <= capacity:
            return
        self.region, coef = self._allocate(stages, width, max(needed, capacity + capacity // 2))
        rows = slice(*block_of(stages * width, self.pool.writer, self.pool.writers))
        coef.reshape(stages * width, -1)[rows, :capacity] = old.reshape(-1, capacity)[rows]
        self.region.fence()
        self.pool = self.pool._replace(coef=coef)
        old_region.close()

    def load(self, counts: list[int], file: BinaryIO | None) -> None:
        """Fill the pool of every node from `file`, which rank 0 alone reads.

        Rank 0 reads directly into the region of its own node.
        """
        self.make_room(max(counts) + ROOM)
        for t, count in enumerate(counts):
            for coefficients in self.pool.coef[t, :, :count] if count else ():
                if file is not None:
                    file.readinto(coefficients)
                self._comm.broadcast(coefficients, 0)
        self.region.fence()
        self.pool.count[:] = counts

    def close(self) -> None:
        """Close the region."""
        self.region.close()
