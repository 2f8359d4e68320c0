"""A sequence of collectives in which one rank calls something else at some step."""

from cobre_comm import CommError
from cobre_comm.testing.conformance.bodies.lost import collective


def one_goes_astray(comm, callers, steps, astray_at, who, other):
    """Return the first error and its step; the callers take turns, each rank in its own way."""
    for step, planned in enumerate(steps):
        operation, length, keywords = other if (step, comm.rank) == (astray_at, who) else planned
        caller = callers[(step + comm.rank) % len(callers)]
        try:
            collective(comm, caller, operation, length, **keywords)
        except CommError as error:
            return error, step
    return None, len(steps)
