"""The state of one linear program: its data, its basis and working arrays, allocated once.

The program is min c.x over lower <= x <= upper and z = A x with bounds on z too. So the right-hand
side is in the bounds of the row activities z, and the system [A, -I](x, z) = 0 is homogeneous: a
new right-hand side is only a new bound.

Variables are numbered 0..n-1 (structural), n..n+m-1 (activities of the m base rows). Then follows
one variable for each slot; a slot is for a row (a cut) that is added while solving. Row i is the
row that has the activity n + i.
"""

from typing import NamedTuple

import numpy as np
from compiled import plain

AT_LOWER, AT_UPPER, AT_ZERO = 0, 1, 2
"""Where a nonbasic variable rests; `AT_ZERO` is for free variables."""

ROWS, AGE, PIVOTS, RESULT, SHIFTED, USED = 0, 1, 2, 3, 4, 5
"""Indices in `head`: rows of the program now, pivots since the inverse was rebuilt, pivots in all,
last outcome, whether a reduced cost was shifted, number of slots up to the last one in use."""

RESIDUAL, EXCESS, PRICE, GAP, MEASURES = 0, 1, 2, 3, 4
"""Indices in `measure`: residual of z = A x; by how much a bound is passed; reduced cost of the
wrong sign; primal minus dual objective. All are relative, and 0 is right. `MEASURES`: how many."""


class Sparse(NamedTuple):
    """The nonzero entries of a matrix, line by line (a line is a row or a column)."""

    first: np.ndarray  # (lines + 1,) the entries of line i are first[i]:first[i + 1]
    index: np.ndarray  # (entries,) the column (or the row) of each entry
    value: np.ndarray  # (entries,)


def sparse(matrix: np.ndarray) -> Sparse:
    """Return the nonzero entries of `matrix` by its rows."""
    line, index = np.nonzero(matrix)
    first = np.searchsorted(line, np.arange(matrix.shape[0] + 1))
    # Both arrays are copies of columns of what NumPy has found. For one entry, numba would
    # otherwise give the array another type.
    return Sparse(first, np.ascontiguousarray(index), matrix[line, index])


class Lp(NamedTuple):
    """Arrays of one linear program of m base rows, n columns and some slots for added rows."""

    by_row: Sparse  # base rows
    by_column: Sparse  # the same matrix by columns
    cost: np.ndarray  # (n,)
    lower: np.ndarray  # (n + m + slots,)
    upper: np.ndarray  # (n + m + slots,)
    ceiling: np.ndarray  # (n,) a bound that no optimal x exceeds, if `upper` is infinite
    status: np.ndarray  # (n + m + slots,) AT_LOWER, AT_UPPER or AT_ZERO, if nonbasic
    # (n + m + slots,) the variable's place in the basis; -1: nonbasic; never -1 for a free slot
    place: np.ndarray
    basis: np.ndarray  # (m + slots,) the variable of each place
    inverse: np.ndarray  # (m + slots, m + slots) minus the inverse of the basis: row i, place p
    weight: np.ndarray  # (m + slots,) squared norm of each place's row of the inverse
    x: np.ndarray  # (n + m + slots,) values of all variables
    red: np.ndarray  # (n + m + slots,) reduced costs, 0 if basic
    cut: np.ndarray  # (slots, p) coefficients of added rows on the first p variables
    key: np.ndarray  # (slots,) the caller's name of an added row; -1: the slot is free
    head: np.ndarray  # (6,) at ROWS, AGE, PIVOTS, RESULT, SHIFTED, USED
    y: np.ndarray  # (m + slots,) dual solution, by row
    dual: np.ndarray  # (n,) reduced costs recomputed from the data
    # (n + m + slots,) work: how the leaving variable moves with each other variable
    entry: np.ndarray
    column: np.ndarray  # (m + slots,) work: how the basic variables move with the entering variable
    across: np.ndarray  # (m + slots,) work: products of a row of the inverse with the other rows
    ratio: np.ndarray  # (n + m + slots,) work: dual ratios
    mark: np.ndarray  # (n + m + slots,) work: candidates
    base: np.ndarray  # (1,) dual objective
    measure: np.ndarray  # (MEASURES,) errors of the last solution that was checked


def allocate(a: np.ndarray, slots: int, width: int) -> Lp:
    """Return an `Lp` of the base rows `a`, with room for `slots` added rows.

    `slots` must exceed the number of added rows that can bind at once, because only rows that do
    not bind can be dropped to make room; `width` + 1 is a safe number of slots. An added row has
    `width` coefficients.
    """
    rows, columns = a.shape
    total, height = columns + rows + slots, rows + slots
    return Lp(
        by_row=sparse(a),
        by_column=sparse(a.T),
        cost=np.zeros(columns),
        lower=np.zeros(total),
        upper=np.full(total, np.inf),
        ceiling=np.full(columns, np.inf),
        status=np.zeros(total, np.int64),
        place=np.zeros(total, np.int64),
        basis=np.zeros(height, np.int64),
        inverse=np.zeros((height, height)),
        weight=np.zeros(height),
        x=np.zeros(total),
        red=np.zeros(total),
        cut=np.zeros((slots, width)),
        key=np.full(slots, -1, np.int64),
        head=np.zeros(6, np.int64),
        y=np.zeros(height),
        dual=np.zeros(columns),
        entry=np.zeros(total),
        column=np.zeros(height),
        across=np.zeros(height),
        ratio=np.zeros(total),
        mark=np.zeros(total, np.int64),
        base=np.zeros(1),
        measure=np.zeros(MEASURES),
    )


class Basis(NamedTuple):
    """The arrays of an `Lp` that say its basis; in a stack of bases, each has one axis more."""

    lower: np.ndarray
    upper: np.ndarray
    status: np.ndarray
    place: np.ndarray
    basis: np.ndarray
    inverse: np.ndarray
    weight: np.ndarray
    red: np.ndarray
    cut: np.ndarray
    key: np.ndarray
    head: np.ndarray


def basis_words(lp: Lp) -> int:
    """Return how many words of eight bytes a `Basis` of `lp` takes."""
    return sum(getattr(lp, name).size for name in Basis._fields)


def stacked(lp: Lp, room: np.ndarray) -> Basis:
    """Return bases of programs like `lp`, one in each line of `room` (count, words of a basis)."""
    arrays, begin = [], 0
    for name in Basis._fields:
        one = getattr(lp, name)
        part = room[:, begin : begin + one.size].view(one.dtype)
        arrays.append(
            np.lib.stride_tricks.as_strided(
                part, (len(room), *one.shape), (room.strides[0], *one.strides)
            )
        )
        begin += one.size
    return Basis(*arrays)


@plain
def of_stack(stack: Basis, i: int) -> Basis:
    """Return basis `i` of a stack; its arrays are views."""
    return Basis(
        stack.lower[i], stack.upper[i], stack.status[i], stack.place[i], stack.basis[i],
        stack.inverse[i], stack.weight[i], stack.red[i], stack.cut[i], stack.key[i], stack.head[i],
    )  # fmt: skip


@plain
def copy_values(src: np.ndarray, dst: np.ndarray) -> None:
    """Copy `src` over the beginning of `dst`; a loop compiles to far less code than a slice."""
    for i in range(src.size):
        dst[i] = src[i]


@plain
def rows_of(lp: Lp) -> int:
    """Return the number of base rows."""
    return lp.by_row.first.size - 1


@plain
def end_of(lp: Lp) -> int:
    """Return the last row plus one; rows of free slots may come before the last row."""
    return lp.by_row.first.size - 1 + lp.head[USED]


@plain
def has_row(lp: Lp, i: int) -> bool:
    """Tell whether the program has row `i`, as a base row or as an added row."""
    m = rows_of(lp)
    return i < m or lp.key[i - m] >= 0


@plain
def is_nonbasic(lp: Lp, var: int) -> bool:
    """Tell whether the program has the variable `var`, and `var` is nonbasic."""
    return lp.place[var] < 0


@plain
def copy_basis(src, dst) -> None:  # type: ignore
    """Copy a basis between any two of `Lp` and `Basis` that have the same base rows and costs."""
    height, slots = src.inverse.shape[0], src.key.size
    m, rows, used = height - slots, src.head[ROWS], src.head[USED]
    for i in range(m + used):
        if i < m or src.key[i - m] >= 0:
            for p in range(rows):
                dst.inverse[i, p] = src.inverse[i, p]
    for p in range(rows):
        dst.basis[p] = src.basis[p]
        dst.weight[p] = src.weight[p]
    for v in range(src.status.size - slots + used):
        dst.status[v] = src.status[v]
        dst.place[v] = src.place[v]
        dst.lower[v] = src.lower[v]
        dst.upper[v] = src.upper[v]
        dst.red[v] = src.red[v]
    for s in range(slots):
        dst.key[s] = src.key[s]
        if s < used and src.key[s] >= 0:
            for j in range(src.cut.shape[1]):
                dst.cut[s, j] = src.cut[s, j]
    for k in (ROWS, AGE, SHIFTED, USED):
        dst.head[k] = src.head[k]
