"""The state of one linear program: data, tableau and working arrays, allocated once.

The program is  min c.x  over  lower <= x <= upper  and  z = A x  with bounds on z too. So the
right-hand side lives in the bounds of the row activities z, and the system [A, -I](x, z) = 0 is
homogeneous. A basis then needs no constant column: x_basic = tab @ x_nonbasic for any
right-hand side, and a new right-hand side is only a new bound.

Variables are numbered 0..n-1 (structural), n..n+m-1 (activities of the m base rows), then one
per slot for rows that are added while solving (cuts).
"""

from typing import NamedTuple

import numpy as np
from compiled import PLAIN
from numba import njit

AT_LOWER, AT_UPPER, AT_ZERO = 0, 1, 2
"""Where a nonbasic variable rests; `AT_ZERO` is for free variables."""

ROWS, AGE, PIVOTS, RESULT, SHIFTED = 0, 1, 2, 3, 4
"""Indices in `head`: rows in the tableau, pivots since its rebuild, pivots in all, last status,
whether `red` has costs that are not as given."""

RESIDUAL, EXCESS, PRICE, GAP, MEASURES = 0, 1, 2, 3, 4
"""Indices in `measure`: residual of z = A x; by how much a bound is passed; reduced cost of the
wrong sign; primal less dual objective. All relative, and 0 is right. `MEASURES`: how many."""


class Lp(NamedTuple):
    """Arrays of one linear program of m base rows, n columns and some slots for added rows."""

    a: np.ndarray  # (m, n) base rows
    cost: np.ndarray  # (n,)
    lower: np.ndarray  # (n + m + slots,)
    upper: np.ndarray  # (n + m + slots,)
    ceiling: np.ndarray  # (n,) a bound that no optimal x exceeds, where `upper` is infinite
    status: np.ndarray  # (n + m + slots,) AT_LOWER, AT_UPPER or AT_ZERO, if nonbasic
    where: np.ndarray  # (n + m + slots,) row of a basic variable, ~column of a nonbasic one
    tab: np.ndarray  # (m + slots, n) x_basic = tab @ x_nonbasic
    red: np.ndarray  # (n,) reduced cost of each column
    basis: np.ndarray  # (m + slots,) variable of each row
    nonbasic: np.ndarray  # (n,) variable of each column
    xb: np.ndarray  # (m + slots,) value of each row's variable
    xn: np.ndarray  # (n,) value of each column's variable
    cut: np.ndarray  # (slots, p) coefficients of added rows on the first p variables
    key: np.ndarray  # (slots,) the caller's name of an added row, -1 = slot is free
    head: np.ndarray  # (5,) at ROWS, AGE, PIVOTS, RESULT, SHIFTED
    x: np.ndarray  # (n,) primal solution
    y: np.ndarray  # (m + slots,) dual solution, by row
    dual: np.ndarray  # (n,) reduced costs recomputed from the data
    ratio: np.ndarray  # (n,) work: dual ratios
    mark: np.ndarray  # (n,) work: candidate columns
    base: np.ndarray  # (1,) dual objective
    measure: np.ndarray  # (MEASURES,) errors of the last solution that was checked


def allocate(rows: int, columns: int, slots: int, width: int) -> Lp:
    """Return an `Lp` of `rows` base rows with room for `slots` added rows of `width` coefficients.

    `slots` must exceed the number of added rows that can bind at once, because only other rows can
    make room. `width` is a safe count.
    """
    total, height = columns + rows + slots, rows + slots
    return Lp(
        a=np.zeros((rows, columns)),
        cost=np.zeros(columns),
        lower=np.zeros(total),
        upper=np.full(total, np.inf),
        ceiling=np.full(columns, np.inf),
        status=np.zeros(total, np.int64),
        where=np.zeros(total, np.int64),
        tab=np.zeros((height, columns)),
        red=np.zeros(columns),
        basis=np.zeros(height, np.int64),
        nonbasic=np.zeros(columns, np.int64),
        xb=np.zeros(height),
        xn=np.zeros(columns),
        cut=np.zeros((slots, width)),
        key=np.full(slots, -1, np.int64),
        head=np.zeros(5, np.int64),
        x=np.zeros(columns),
        y=np.zeros(height),
        dual=np.zeros(columns),
        ratio=np.zeros(columns),
        mark=np.zeros(columns, np.int64),
        base=np.zeros(1),
        measure=np.zeros(MEASURES),
    )


def stacked(count: int, one: Lp) -> Lp:
    """Return room for `count` programs as large as `one`: each array gets a first axis."""
    return Lp(*(np.zeros((count, *array.shape), array.dtype) for array in one))


@njit(**PLAIN)
def of_stack(stack: Lp, i: int) -> Lp:
    """Return program `i` of a stack, whose arrays are views."""
    return Lp(
        stack.a[i], stack.cost[i], stack.lower[i], stack.upper[i], stack.ceiling[i],
        stack.status[i], stack.where[i], stack.tab[i], stack.red[i], stack.basis[i],
        stack.nonbasic[i], stack.xb[i], stack.xn[i], stack.cut[i], stack.key[i], stack.head[i],
        stack.x[i], stack.y[i], stack.dual[i], stack.ratio[i], stack.mark[i], stack.base[i],
        stack.measure[i],
    )  # fmt: skip


@njit(**PLAIN)
def copy_values(src: np.ndarray, dst: np.ndarray) -> None:
    """Copy `src` over the beginning of `dst`; a plain loop compiles to far less than a slice."""
    for i in range(src.size):
        dst[i] = src[i]


@njit(**PLAIN)
def copy_basis(src: Lp, dst: Lp) -> None:
    """Make `dst` the same program at the same basis as `src` (same shapes, same `a`, `cost`)."""
    rows = src.head[ROWS]
    columns = src.red.size
    for i in range(rows):
        dst.basis[i] = src.basis[i]
        for j in range(columns):
            dst.tab[i, j] = src.tab[i, j]
    copy_values(src.red, dst.red)
    copy_values(src.nonbasic, dst.nonbasic)
    copy_values(src.status, dst.status)
    copy_values(src.where, dst.where)
    copy_values(src.lower, dst.lower)
    copy_values(src.upper, dst.upper)
    copy_values(src.key, dst.key)
    for s in range(src.key.size):
        if src.key[s] >= 0:
            for j in range(src.cut.shape[1]):
                dst.cut[s, j] = src.cut[s, j]
    dst.head[ROWS] = rows
    dst.head[AGE] = src.head[AGE]
    dst.head[SHIFTED] = src.head[SHIFTED]
