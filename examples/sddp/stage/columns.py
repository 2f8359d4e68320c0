"""The place of each kind of variable, and of each kind of row, in the stage problem.

Structural variables, in this order: end volumes v' (H), cost to go theta (1), turbined water of
each segment (Q), spill (H), thermal generation (G), steps of the deficit (D), exchange from source
to target and back (2 L), excess of each bus that may have one, water bought by each hydro that may
buy it, how far limits are missed from below (E) and from above (E). Volumes and theta come first
because cuts are rows over exactly these variables. Base rows: water balance of each hydro (H),
energy of each bus (B), limits of outflow (E).
"""

from typing import NamedTuple

from case.data import Case


class Columns(NamedTuple):
    """The first column of each kind of variable; the columns of volumes begin at 0."""

    theta: int
    turbines: int
    spill: int
    thermal: int
    deficit: int
    forward: int
    backward: int
    excess: int
    bought: int
    below: int
    above: int
    end: int


class Rows(NamedTuple):
    """The first row of each kind; the rows of water balances begin at 0."""

    energy: int
    limits: int
    end: int


def columns_of(case: Case) -> Columns:
    """Return the columns of `case`."""
    hydros, lines = case.hydros, len(case.lines)
    limits = sum(len(h.limits) for h in hydros)
    counts = {
        "theta": len(hydros),
        "turbines": 1,
        "spill": sum(len(h.segments) for h in hydros),
        "thermal": len(hydros),
        "deficit": len(case.thermals),
        "forward": sum(len(bus.deficit) for bus in case.buses),
        "backward": lines,
        "excess": lines,
        "bought": sum(bus.excess_cost is not None for bus in case.buses),
        "below": sum(h.water_cost is not None for h in hydros),
        "above": limits,
        "end": limits,
    }
    begin, total = {}, 0
    for name, before in counts.items():
        total += before
        begin[name] = total
    return Columns(**begin)


def rows_of_case(case: Case) -> Rows:
    """Return the rows of `case`."""
    hydros, buses = len(case.hydros), len(case.buses)
    limits = hydros + buses
    return Rows(hydros, limits, limits + sum(len(h.limits) for h in case.hydros))
