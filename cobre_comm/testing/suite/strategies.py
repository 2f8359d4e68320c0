"""What hypothesis draws: tables, shapes, and sequences in which one rank goes astray."""

from __future__ import annotations

from hypothesis import HealthCheck
from hypothesis import strategies as st

from cobre_comm.testing.cases.faults.calling import OPERATIONS
from cobre_comm.testing.cases.reference import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    OPS,
    PLAIN,
    PYTHON_ONLY,
)

# An example is a job of its own, on ranks that stay; the same examples in every run.
BOUNDED = {
    "deadline": None,
    "derandomize": True,
    "suppress_health_check": list(HealthCheck),
    "database": None,
}
COMPILED = ["f8", "u1", "i4"]  # each type costs a compilation
LENGTHS = [1, 5, 12, 13, 200, 2000]
STEPS = 12


@st.composite
def tables(draw, size):
    """Counts of any size, blocks in any order with any gaps."""
    counts = [draw(st.one_of(st.just(0), st.integers(1, 20), st.integers(0, 2000)))
              for _ in range(size)]  # fmt: skip
    order = draw(st.permutations(range(size)))
    displs, end = [0] * size, 0
    for rank in order:
        end += draw(st.integers(0, 3))
        displs[rank] = end
        end += counts[rank]
    return counts, displs, end + draw(st.integers(0, 3))


def dtypes(caller):
    """Any dtype that moves."""
    return st.sampled_from([*PLAIN, *PYTHON_ONLY] if caller == "python" else COMPILED)


def shapes(caller, smallest):
    """Long vectors, and arrays of up to four dimensions, of 0 elements too if these may be."""
    length = st.integers(smallest, 12)
    most = 4 if caller == "python" else 2
    least = 0 if caller == "python" else 1
    small = st.lists(length, min_size=least, max_size=most).map(tuple)
    return st.one_of(small, st.tuples(st.integers(smallest, 6000)))


@st.composite
def reductions(draw, caller):
    """Any dtype with any operation that it has."""
    op = draw(st.sampled_from(OPS))
    if caller != "python":
        return draw(st.sampled_from(COMPILED)), op
    complexes = COMPLEX if op == OPS[0] else []
    return draw(st.sampled_from([*INTEGERS, *FLOATS, *complexes])), op


@st.composite
def calls(draw, size):
    """One collective: what it is, how long, and how."""
    operation = draw(st.sampled_from(OPERATIONS))
    if operation == "barrier":
        return operation, 5, {}
    keywords = {"dtype": draw(st.sampled_from(["f8", "i8"]))}
    if operation == "allreduce":
        keywords["op"] = draw(st.sampled_from(OPS))
    if operation == "broadcast":
        keywords["root"] = draw(st.integers(0, size - 1))
    return operation, draw(st.sampled_from(LENGTHS)), keywords


@st.composite
def sequences(draw, sizes):
    """Draw (number of ranks, calls, the step and the rank that goes astray, what it calls)."""
    size = draw(st.sampled_from(sizes))
    steps = draw(st.lists(calls(size), min_size=1, max_size=STEPS))
    at = draw(st.integers(0, len(steps) - 1))
    other = draw(calls(size).filter(lambda call: call != steps[at]))
    return size, steps, at, draw(st.integers(0, size - 1)), other
