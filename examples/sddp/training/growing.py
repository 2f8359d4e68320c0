"""Arrays in shared memory, with growing rows for each stage."""

from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from training.plan import block_of
from training.share import Setting


class GrowingRows:
    """Rows of each stage in a shared region: one copy, which the ranks of the node write together.

    All ranks of the communicator create, load and close the rows, and make room in them, together.

    Attributes
    ----------
    rows : ndarray, shape (T, width, room)
        A view of the region.
    region : SharedRegion
        Fence it after rows were written and before they are read.
    """

    def __init__(self, setting: Setting, width: int, room: int) -> None:
        self._comm, self._node = setting.comm, setting.node
        self.region, self.rows = self._allocate(setting.problem.cost.shape[0], width, room)

    def _allocate(self, stages: int, width: int, room: int) -> tuple[Any, np.ndarray]:
        region = self._comm.create_shared_region((stages, width, room))
        return region, region.part(0, stages)

    def make_room(self, needed: int) -> None:
        """Make rows at least `needed` long."""
        room = self.rows.shape[2]
        if needed > room:
            self.move(self.rows, max(needed, room + room // 2))

    def move(self, old: np.ndarray, room: int) -> None:
        """Move the `old` rows to a new region, in which a row may have the length `room`.

        Each rank of the node moves its share. If a rank is lost meanwhile, the attributes `region`
        and `rows` stay as they are.
        """
        stages, width, filled = old.shape
        region, rows = self._allocate(stages, width, room)
        mine = slice(*block_of(stages * width, self._node.rank, self._node.size))
        rows.reshape(stages * width, -1)[mine, :filled] = old.reshape(-1, filled)[mine]
        region.fence()
        self.region.close()
        self.region, self.rows = region, rows

    def load(self, counts: Sequence[int], file: BinaryIO | None) -> None:
        """Fill the first `counts` of each stage's rows on every node, from `file` on rank 0.

        Rank 0 reads directly into the region of its own node.
        """
        for t, count in enumerate(counts):
            for row in self.rows[t, :, :count] if count else ():
                if file is not None:
                    file.readinto(row)
                self._comm.broadcast(row, 0)
        self.region.fence()

    def filled(self, counts: Sequence[int]) -> list[np.ndarray]:
        """Return the first `counts` of each stage's rows, in the order in which they are loaded."""
        return [row for t, count in enumerate(counts) for row in self.rows[t, :, :count]]

    def close(self) -> None:
        """Close the region."""
        self.region.close()
