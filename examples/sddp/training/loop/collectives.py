"""Claims, phases and collectives of the training loop."""

import math

from compiled import calling, plain

from cobre_comm import ReduceOp
from training.loop.memory import NONE


@calling
def my_share(comm, items) -> tuple[int, int]:  # type: ignore
    """Return the first item of this rank's share of `items`, and the item after its last."""
    return comm.share(items)


@plain
def first_of(item: int, step: int, steps: int) -> int:
    """Return the first trajectory with an item of `step` that is `item` or a later item."""
    return (item - step + steps - 1) // steps


@calling
def claim(work, ahead, step, steps) -> int:  # type: ignore
    """Return the trajectory of this rank's next item in `step` of `steps`; `NONE` after the last.

    If a rank gets an item of a later step, all items of this step have been claimed. The rank keeps
    the item in `ahead`, for that later step.
    """
    item = ahead[0] if ahead[0] != NONE else work.claim()
    is_later = item != NONE and item % steps != step
    ahead[0] = item if is_later else NONE
    return NONE if item == NONE or is_later else item // steps


@calling
def claim_group(work, ahead, group, steps, ranks) -> int:  # type: ignore
    """Claim trajectories of step 0 into `group`; return how many; 0 if none is left.

    A group is a share of the trajectories that the node still has, so the last groups have one
    trajectory each (C. D. Polychronopoulos, D. J. Kuck, "Guided self-scheduling", IEEE Trans.
    Comput. 36, 1987).
    """
    group[0] = claim(work, ahead, 0, steps)
    if group[0] == NONE:
        return 0
    left = first_of(work.stop, 0, steps) - group[0]
    for i in range(1, left // (2 * ranks)):
        group[i] = claim(work, ahead, 0, steps)
        if group[i] == NONE:
            return i
    return max(1, left // (2 * ranks))


@calling
def enter(comm, number) -> int:  # type: ignore
    """Enter a phase; return the number of the phase before."""
    return comm.enter_phase(number)


@calling
def fence(region) -> None:  # type: ignore
    """Wait until the ranks of the node have written to the region."""
    region.fence()


@calling
def gather(comm, rows, counts, displs) -> None:  # type: ignore
    """Gather the rows of all leaders."""
    width = rows.shape[1]
    begin, own = displs[comm.rank] // width, counts[comm.rank] // width
    comm.allgatherv(rows[begin : begin + own], rows, counts, displs)


@plain
def share(comm, region, rows, state, step) -> None:  # type: ignore
    """Let all ranks see the `rows` of a step.

    The ranks of a node have written their rows to one memory. If there are several nodes, the rows
    of all nodes are gathered.
    """
    memory, steps, width = state.memory, state.problem.cost.shape[0], rows.shape[1]
    fence(region)
    if state.pool.writers == memory.counts.size:
        return
    for r in range(memory.counts.size):
        memory.displs[r] = first_of(memory.spans[r, 0], step, steps) * width
        memory.counts[r] = first_of(memory.spans[r, 1], step, steps) * width - memory.displs[r]
    gather(comm, rows, memory.counts, memory.displs)


@calling
def reduce_all(comm, bound, stats) -> None:  # type: ignore
    """Reduce `bound` by MIN and `stats` by SUM, in place."""
    comm.allreduce(bound, bound, ReduceOp.MIN)
    comm.allreduce(stats, stats, ReduceOp.SUM)


@calling
def add_up(comm, values) -> float:  # type: ignore
    """Return the exact sum of all ranks' values, rounded once."""
    return comm.exact_sum(values)


@plain
def estimate(comm, costs, count, factor, line) -> None:  # type: ignore
    """Write mean and 95 % half-width of `count` costs; this rank has `costs`.

    `factor` is from `half_width_factor`. For a single cost, `factor` and the half-width are NaN.
    Mean and half-width are made of exact sums, so they are the same however the costs are split
    over ranks.
    """
    line.mean = add_up(comm, costs) / count
    for i in range(costs.size):
        costs[i] = (costs[i] - line.mean) ** 2
    squares = add_up(comm, costs)
    variance = squares / (count - 1.0) if count > 1.0 else math.nan
    line.half_width = factor * math.sqrt(variance / count)
