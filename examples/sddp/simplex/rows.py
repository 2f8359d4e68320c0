"""Rows that come and go: a row is added for a violated cut, and dropped when the cut is slack."""

import numpy as np
from compiled import plain

from simplex.state import AT_LOWER, ROWS, USED, Lp, end_of, has_row, rows_of


@plain
def add_row(lp: Lp, coefficients: np.ndarray, low: float, key: int) -> None:
    """Add the row  low <= coefficients . x[:p]  with its activity basic; a slot must be free."""
    n, m = lp.cost.size, rows_of(lp)
    slot = 0
    while lp.key[slot] >= 0:
        slot += 1
    place, i = lp.head[ROWS], m + slot
    lp.key[slot] = key
    lp.head[USED] = max(lp.head[USED], slot + 1)
    lp.head[ROWS] = place + 1
    for p in range(place + 1):
        lp.inverse[i, p] = 0.0
    lp.inverse[i, place] = 1.0
    norm = 1.0
    for k in range(m + lp.head[USED]):
        if k != i and has_row(lp, k):
            total = 0.0
            for j in range(coefficients.size):
                p = lp.place[j]
                if p >= 0:
                    total += coefficients[j] * lp.inverse[k, p]
            lp.inverse[k, place] = total
            norm += total * total
    for j in range(coefficients.size):
        lp.cut[slot, j] = coefficients[j]
    var = n + i
    lp.lower[var], lp.upper[var] = low, np.inf
    lp.status[var] = AT_LOWER
    lp.red[var] = 0.0
    lp.basis[place], lp.place[var] = var, place
    lp.weight[place] = norm


@plain
def drop_slack_rows(lp: Lp) -> None:
    """Remove every added row that has a basic activity: such a row does not bind at this basis."""
    n, m = lp.cost.size, rows_of(lp)
    for slot in range(lp.head[USED]):
        place = lp.place[n + m + slot]
        if lp.key[slot] >= 0 and place >= 0:
            lp.key[slot] = -1
            last = lp.head[ROWS] - 1
            if place != last:
                for i in range(end_of(lp)):
                    if has_row(lp, i):
                        lp.inverse[i, place] = lp.inverse[i, last]
                lp.weight[place] = lp.weight[last]
                lp.basis[place] = lp.basis[last]
                lp.place[lp.basis[place]] = place
            lp.head[ROWS] = last
    used = 0
    for s in range(lp.head[USED]):
        if lp.key[s] >= 0:
            used = s + 1
    lp.head[USED] = used
