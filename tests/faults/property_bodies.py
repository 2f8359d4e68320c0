"""A random sequence of collectives in which one rank calls something else at a random step."""

import random

from cobre_comm import CommError, ReduceOp
from tests.faults.bodies import OPERATIONS, collective

LENGTHS = [1, 5, 12, 13, 200, 2000]


def _call(draw, size):
    operation = draw.choice(OPERATIONS)
    keywords = {"dtype": draw.choice(["f8", "i8"])}
    if operation == "barrier":
        return operation, 5, {}
    if operation == "allreduce":
        keywords["op"] = draw.choice(list(ReduceOp))
    if operation == "broadcast":
        keywords["root"] = draw.randrange(size)
    return operation, draw.choice(LENGTHS), keywords


def one_goes_astray(comm, seed):
    """Return the first error, its step, and the step at which one rank went astray."""
    draw = random.Random(seed)
    draw.choice([2, 3, 4])
    steps = [_call(draw, comm.size) for _ in range(12)]
    astray_at, who = draw.randrange(12), draw.randrange(comm.size)
    other = _call(draw, comm.size)
    while other == steps[astray_at]:
        other = _call(draw, comm.size)
    callers = ["python", "njit"]
    for step, planned in enumerate(steps):
        operation, length, keywords = other if (step, comm.rank) == (astray_at, who) else planned
        try:
            caller = callers[(seed + step + comm.rank) % 2]
            collective(comm, caller, operation, length, **keywords)
        except CommError as error:
            return error, step, astray_at
    return None, len(steps), astray_at
