"""The finished iterations of a training: what a rank keeps when another rank is lost.

Every node holds all cuts, so every survivor has them. A survivor may have finished one iteration
more than another survivor, but not two, because no iteration ends without all ranks. So each rank
keeps the state after each of its latest two iterations, and all survivors continue from the latest
iteration that all of them have finished.
"""

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from training.run import Run

NONE = -1


class After(NamedTuple):
    """The state of a training after a number of iterations."""

    counts: np.ndarray  # (T,) cuts of each stage
    reference: np.ndarray  # (T, H) incoming volumes of the reference bases


class Finished:
    """The iterations that this rank has finished, on any communicator.

    Attributes
    ----------
    rows : ndarray
        The cuts, in the region where they were when the latest iteration ended. The view keeps the
        memory, even when the region is closed. An iteration that was cut short has written only
        behind the counted cuts, where later cuts are written again.
    trace : ndarray of TRACE
        One record per iteration.
    resumed_after : int
        Iterations that the checkpoint held.
    """

    def __init__(self) -> None:
        self._after: dict[int, After] = {}
        self._begun: float | None = None

    def seconds(self) -> float:
        """Return the seconds since this method was first called, on whatever communicator."""
        now = time.monotonic()
        self._begun = now if self._begun is None else self._begun
        return now - self._begun

    def keep(self, run: "Run") -> None:
        """Keep the state of `run`, between two iterations."""
        number = len(run.trace)
        before = {k: after for k, after in self._after.items() if k == number - 1}
        now = After(run.cuts.pool.count.copy(), run.reference.copy())
        self._after = {**before, number: now}
        self.rows, self.trace = run.cuts.memory.rows, run.trace
        self.resumed_after = run.resumed_after

    def agree(self, comm: Any) -> int:
        """Return how many iterations all ranks have finished; `NONE` if any rank has not begun."""
        return int(comm.min(max(self._after, default=NONE)))

    def after(self, number: int) -> After:
        """Return the state after so many iterations."""
        return self._after[number]
