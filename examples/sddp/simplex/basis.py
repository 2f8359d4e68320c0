"""The inverse of a basis: cold start, its rows and columns, exchange, rebuild.

Every step of the simplex adds multiples of lines of the inverse. A line holds the numbers of one
row of the program, one for each place in the basis, so it is contiguous. A line with a factor of
zero is left out. At a few hundred rows, these steps take less time than the bookkeeping of sparse
factors would. What is stored is minus the inverse: if a nonbasic variable with the entry ``value``
in row i moves by one, the basic variables move by ``value * inverse[i]``. So the inverse of the
slack basis is the unit matrix.

Reference: G. B. Dantzig, W. Orchard-Hays, "The product form for the inverse in the simplex method",
Math. Tables Aids Comput. 8 (1954) 64.
"""

import numpy as np
from compiled import plain

from simplex.state import (
    AGE,
    AT_LOWER,
    AT_UPPER,
    AT_ZERO,
    ROWS,
    SHIFTED,
    USED,
    Lp,
    end_of,
    has_row,
    rows_of,
)

SINGULAR = 1e-12
"""A pivot below this times the largest entry of its column counts as zero. Cuts that are nearly
alike leave pivots of 1e-10, and the simplex has to continue at such bases."""
LIGHTEST = 1e-4
"""The least weight, so that rounding makes no weight zero or negative."""


@plain
def resting_value(lp: Lp, var: int) -> float:
    """Return the value of the nonbasic variable `var`."""
    if lp.status[var] == AT_LOWER:
        return lp.lower[var]
    if lp.status[var] == AT_UPPER:
        return lp.upper[var]
    return 0.0


@plain
def slack_basis(lp: Lp) -> None:
    """Make all row activities basic."""
    n, m = lp.cost.size, rows_of(lp)
    for j in range(n):
        lp.place[j] = -1
        lp.red[j] = lp.cost[j]
    rows, used = 0, 0
    for s in range(lp.key.size):
        lp.place[n + m + s] = 0
        if lp.key[s] >= 0:
            used = s + 1
    lp.head[USED] = used
    for i in range(m + used):
        if has_row(lp, i):
            lp.basis[rows], lp.place[n + i] = n + i, rows
            lp.red[n + i] = 0.0
            lp.weight[rows] = 1.0
            rows += 1
    for i in range(m + used):
        if has_row(lp, i):
            for p in range(rows):
                lp.inverse[i, p] = 0.0
            lp.inverse[i, lp.place[n + i]] = 1.0
    lp.head[ROWS] = rows
    lp.head[AGE] = lp.head[SHIFTED] = 0


@plain
def cold_start(lp: Lp) -> bool:
    """Put `lp` at the slack basis, each variable on the bound that its cost prefers; rows stay.

    Returns False if a cost prefers an infinite bound, because no such start exists then.
    """
    slack_basis(lp)
    for j in range(lp.cost.size):
        low, high = np.isfinite(lp.lower[j]), np.isfinite(lp.upper[j])
        if (lp.cost[j] > 0.0 and not low) or (lp.cost[j] < 0.0 and not high):
            return False
        if lp.cost[j] < 0.0 or not low:
            lp.status[j] = AT_UPPER if high else AT_ZERO
        else:
            lp.status[j] = AT_LOWER
    return True


@plain
def add_line(lp: Lp, i: int, factor: float, total: np.ndarray) -> None:
    """Add `factor` times line `i` of the inverse to `total`."""
    for p in range(lp.head[ROWS]):
        total[p] += factor * lp.inverse[i, p]


@plain
def add_column(lp: Lp, var: int, factor: float, total: np.ndarray) -> None:
    """Add to `total` how the basic variables move when the nonbasic `var` moves by `factor`."""
    n, m = lp.cost.size, rows_of(lp)
    if var >= n:
        add_line(lp, var - n, -factor, total)
        return
    first, index, value = lp.by_column
    for e in range(first[var], first[var + 1]):
        add_line(lp, index[e], factor * value[e], total)
    if var < lp.cut.shape[1]:
        for s in range(lp.head[USED]):
            if lp.key[s] >= 0 and lp.cut[s, var] != 0.0:
                add_line(lp, m + s, factor * lp.cut[s, var], total)


@plain
def size_of_column(lp: Lp, var: int) -> float:
    """Return the largest entry that the structural variable `var` has in the program."""
    column = lp.by_column
    largest = 0.0
    for e in range(column.first[var], column.first[var + 1]):
        largest = max(largest, abs(column.value[e]))
    if var < lp.cut.shape[1]:
        for s in range(lp.head[USED]):
            if lp.key[s] >= 0:
                largest = max(largest, abs(lp.cut[s, var]))
    return largest


@plain
def add_row_of_matrix(lp: Lp, i: int, factor: float, total: np.ndarray) -> None:
    """Add `factor` times row `i` of the program to `total`, by structural variable."""
    m = rows_of(lp)
    if i < m:
        first, index, value = lp.by_row
        for e in range(first[i], first[i + 1]):
            total[index[e]] += factor * value[e]
    else:
        for j in range(lp.cut.shape[1]):
            total[j] += factor * lp.cut[i - m, j]


@plain
def clear_column(lp: Lp) -> None:
    """Make `column` zero, which says that no basic variable moves."""
    for p in range(lp.head[ROWS]):
        lp.column[p] = 0.0


@plain
def read_column(lp: Lp, var: int) -> None:
    """Write to `column` how the basic variables move when the nonbasic `var` moves by one."""
    clear_column(lp)
    add_column(lp, var, 1.0, lp.column)


@plain
def read_row(lp: Lp, r: int) -> None:
    """Write to `entry` how the basic variable of place `r` moves with each nonbasic variable."""
    n = lp.cost.size
    for j in range(n):
        lp.entry[j] = 0.0
    for i in range(end_of(lp)):
        if not has_row(lp, i):
            continue
        f = lp.inverse[i, r]
        lp.entry[n + i] = -f
        if f != 0.0:
            add_row_of_matrix(lp, i, f, lp.entry)


@plain
def replace(lp: Lp, r: int, var: int) -> None:
    """Let the nonbasic `var` take place `r` in the basis; `column` must hold the column of `var`.

    The weights are updated by the formula of J. J. Forrest, D. Goldfarb, Math. Programming 57
    (1992) 341, but no weight is set below what rounding allows.
    """
    rows = lp.head[ROWS]
    column, across, weight = lp.column, lp.across, lp.weight
    pivot = column[r]
    for p in range(rows):
        across[p] = 0.0
    for i in range(end_of(lp)):
        if not has_row(lp, i):
            continue
        line = lp.inverse[i]
        f = line[r]
        if f == 0.0:
            continue
        g = f / pivot
        for p in range(rows):
            across[p] += f * line[p]
            line[p] -= g * column[p]
        line[r] = -g
    norm = across[r]
    for p in range(rows):
        f = column[p] / pivot
        weight[p] = max(weight[p] - f * (2.0 * across[p] - f * norm), LIGHTEST + f * f)
    weight[r] = max(norm / (pivot * pivot), LIGHTEST)
    leaving = lp.basis[r]
    lp.basis[r] = var
    lp.place[var] = r
    lp.place[leaving] = -1
    lp.head[AGE] += 1


@plain
def weigh(lp: Lp) -> None:
    """Compute all weights anew."""
    for p in range(lp.head[ROWS]):
        lp.weight[p] = 0.0
    for i in range(end_of(lp)):
        if has_row(lp, i):
            for p in range(lp.head[ROWS]):
                lp.weight[p] += lp.inverse[i, p] * lp.inverse[i, p]


@plain
def rebuild(lp: Lp) -> bool:
    """Recompute the inverse of the present basis from the data, without accumulated errors.

    Among the places of activities that must leave the basis, each structural variable of the basis
    takes the place with the largest entry in its column. Returns False if the basis is singular to
    working precision; the caller then starts cold.
    """
    n = lp.cost.size
    for j in range(n):
        lp.mark[j] = 1 if lp.place[j] >= 0 else 0
    for i in range(end_of(lp)):
        lp.mark[n + i] = 1 if lp.place[n + i] >= 0 else 0
    slack_basis(lp)
    for j in range(n - 1, -1, -1):
        if lp.mark[j] == 0:
            continue
        read_column(lp, j)
        best, r = SINGULAR * size_of_column(lp, j), -1
        for p in range(lp.head[ROWS]):
            if lp.basis[p] >= n and lp.mark[lp.basis[p]] == 0 and abs(lp.column[p]) > best:
                best, r = abs(lp.column[p]), p
        if r < 0:
            return False
        replace(lp, r, j)
    weigh(lp)
    reprice(lp)
    lp.head[AGE] = 0
    return True


@plain
def reprice(lp: Lp) -> None:
    """Compute reduced costs from the original costs; write the size of their terms to `ratio`."""
    n, m = lp.cost.size, rows_of(lp)
    for j in range(n):
        lp.red[j] = lp.cost[j]
        lp.ratio[j] = abs(lp.red[j])
    first, index, value = lp.by_row
    for i in range(end_of(lp)):
        if not has_row(lp, i):
            continue
        u = 0.0
        size = 0.0
        for p in range(lp.head[ROWS]):
            var = lp.basis[p]
            if var < n and lp.cost[var] != 0.0:
                u += lp.cost[var] * lp.inverse[i, p]
                size += abs(lp.cost[var] * lp.inverse[i, p])
        lp.red[n + i] = -u
        lp.ratio[n + i] = size
        if size == 0.0:
            continue
        if i < m:
            for e in range(first[i], first[i + 1]):
                lp.red[index[e]] += u * value[e]
                lp.ratio[index[e]] += size * abs(value[e])
        else:
            for j in range(lp.cut.shape[1]):
                lp.red[j] += u * lp.cut[i - m, j]
                lp.ratio[j] += size * abs(lp.cut[i - m, j])
    for p in range(lp.head[ROWS]):
        lp.red[lp.basis[p]] = 0.0
    lp.head[SHIFTED] = 0
