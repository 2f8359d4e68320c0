"""split: the ranks of one color, ordered by (key, rank), are a communicator of their own."""

import gc
from functools import partial

import numpy as np

from cobre_comm import InvalidCommunicator
from cobre_comm.testing.cases.case import NEVER, QUICK, Case, Together
from cobre_comm.testing.cases.memory.regions import populate_by_block
from cobre_comm.testing.cases.mixed.sequences import four_in_a_row
from cobre_comm.testing.cases.raised import raises

# The color and the key of rank r of n ranks, in each plan.
PLANS = {
    "all": lambda r, n: (0, 0),
    "pairs": lambda r, n: (r // 2, 0),
    "odd and even": lambda r, n: (np.int64(r % 2 - 2**63), np.uint8(7)),
    "one alone": lambda r, n: (int(r == n // 2), 0),
    "each alone": lambda r, n: (-r, 0),
    "reversed": lambda r, n: (5, -r),
    "around": lambda r, n: (-1, (r + 1) % n),
    "some without": lambda r, n: (None if r % 3 == 1 else 2**63 - 1, n - r),
    "all without": lambda r, n: (None, 0),
}


def members(plan, rank, size):
    """Return the ranks of the new communicator of one rank, in order; None if it gets none."""
    given = [PLANS[plan](r, size) for r in range(size)]
    color = given[rank][0]
    if color is None:
        return None
    mine = [r for r in range(size) if given[r][0] is not None and given[r][0] == color]
    return sorted(mine, key=lambda r: (int(given[r][1]), r))


def divide(comm, plan, names):
    """Split, and check that the right ranks are together; ``names`` are the parent's ranks."""
    right = members(plan, comm.rank, comm.size)
    child = comm.split(*PLANS[plan](comm.rank, comm.size))
    if right is None:
        assert child is None, child
        return None, []
    here = [names[r] for r in right]
    assert (child.rank, child.size) == (right.index(comm.rank), len(right))
    assert child.backend == comm.backend
    came = np.full(child.size, -1)
    child.allgather(np.array([names[comm.rank]]), came)
    assert came.tolist() == here, f"{plan}: ranks {came.tolist()} have come, not {here}"
    return child, here


def split(comm, caller, plan):
    """Use parent and child in turn, and then split the child."""
    child, names = divide(comm, plan, range(comm.size))
    for _ in range(2):
        four_in_a_row(comm, caller)
        if child is not None:
            four_in_a_row(child, caller)
    if child is not None:
        populate_by_block(child, caller, 1000)
        grandchild, _ = divide(child, "reversed", names)
        child.close()
        four_in_a_row(grandchild, caller)
        grandchild.close()
        raises(InvalidCommunicator, child.split, 0)
    four_in_a_row(comm, caller)


def outlive_the_parent(comm, caller):
    """A parent is closed, or collected as garbage, before its child, which counts its own calls."""
    child, names = divide(comm, "odd and even", range(comm.size))
    comm.barrier()
    before = child.stats()["barrier"].calls
    comm.close()
    child.barrier()
    assert child.stats()["barrier"].calls == before + 1
    nested, _ = divide(child, "reversed", names)
    region = child.create_shared_region(7, np.int64)
    child = None
    gc.collect()
    four_in_a_row(nested, caller)
    populate_by_block(nested, caller, 10)
    nested.close()
    assert region.as_slice().tolist() == [0] * 7


def bad_arguments(comm):
    """A wrong color or key is refused before anything is sent."""
    for color in (1.5, True, np.bool_(0), "red", [1], 2j):
        told = str(raises(TypeError, comm.split, color))
        assert told.startswith("split: color must be an integer, got"), told
        assert told.endswith(
            "; pass an int, or None to get no communicator; of a flag pass int(flag)"
        )
    for key in (None, 0.0, True):
        raises(TypeError, comm.split, 0, key)
    for number in (2**63, -(2**63) - 1, np.uint64(2**63)):
        raises(ValueError, comm.split, number)
        raises(ValueError, comm.split, 0, number)
    raises(TypeError, comm.split, None, "last")
    four_in_a_row(comm, "python")


case = partial(Case, needs=("split", "regions"), column="regions")
CASES = [
    case("plans", split, {"plan": [Together(PLANS)]}, check=QUICK),
    case("outlives_its_parent", outlive_the_parent, fresh=True, check=NEVER),
    case("bad_arguments", bad_arguments, callers=()),
]  # fmt: skip
