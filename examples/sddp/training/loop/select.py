"""Selection of cuts at the end of an iteration, when no basis refers to a cut by its number.

The ranks of a node share out the stages. Points and cuts are the same on all nodes, so each node
selects for itself, without communication.
"""

import numpy as np
from compiled import plain
from stage.points import delete_others, raise_highest, remember

from training.loop.backward import mark_new
from training.loop.memory import State


@plain
def select_cuts(state: State) -> None:
    """Remember this iteration's points; select the cuts of this rank's share of the stages.

    Cuts of stage `t` are functions of the volumes that come into stage `t + 1`. The latest `ring`
    points use the columns in turn. Every rank counts the points of all stages. While a stage has at
    most `spared` cuts, all its cuts are kept.
    """
    pool, points, memory, ring = state.pool, state.points, state.memory, state.plan.ring
    stages, hydros = memory.known.shape
    for t in range(stages - 1):
        mark_new(memory, hydros, t + 1)
        mine = t % pool.writers == pool.writer
        for m in range(memory.new.size):
            if memory.new[m] == 1:
                if mine:
                    point = memory.trial[m, (t + 1) * hydros : (t + 2) * hydros]
                    remember(points, pool, t, points.seen[t] % ring, point)
                points.seen[t] += 1
        if mine:
            count = min(points.seen[t], ring)
            raise_highest(points, pool, t, count, int(points.kept[t]))
            if pool.count[t] > state.plan.spared:
                delete_others(points, pool, t, count)
            else:
                points.kept[t] = pool.count[t]


@plain
def count_kept(count: np.ndarray, kept: np.ndarray) -> None:
    """Copy to `count` the numbers of cuts that the node's ranks have written, after a fence."""
    for t in range(count.size):
        count[t] = kept[t]
