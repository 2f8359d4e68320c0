"""The data of a hydrothermal case, every shape spelled out.

T stages, H hydros, B buses. Numbers are per stage: water in units of a volume, energy, money.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Segment:
    """A part of a turbine: water up to `qmax` [T], energy per unit of it, and the bus it feeds."""

    qmax: list[float]
    productivity: float
    bus: int


@dataclass(frozen=True)
class Limit:
    """Bounds [T] of the outflow of a hydro, or of its turbines alone, and what missing them costs.

    `most` is infinite where there is no upper bound. The costs are per unit of water.
    """

    with_spill: bool
    least: list[float]
    most: list[float]
    below_cost: float
    above_cost: float


@dataclass(frozen=True)
class Hydro:
    """A reservoir and its turbine; `downstream` is the index of the receiver, or -1.

    Water that is not there can be bought at `water_cost`, unless that is None.
    """

    name: str
    vmin: float
    vmax: float
    v0: float
    segments: list[Segment]
    spill_cost: float
    downstream: int
    water_cost: float | None
    limits: list[Limit]


@dataclass(frozen=True)
class Thermal:
    """A thermal plant: the least and most energy [T] that it gives to its bus, and its cost [T]."""

    name: str
    bus: int
    least: list[float]
    capacity: list[float]
    cost: list[float]


@dataclass(frozen=True)
class Step:
    """A step of a deficit: its price, and how much energy [T] it has (infinite in the last)."""

    cost: float
    depth: list[float]


@dataclass(frozen=True)
class Bus:
    """A place where energy balances: steps of its deficit, and the price of an excess, if any."""

    name: str
    deficit: list[Step]
    excess_cost: float | None


@dataclass(frozen=True)
class Line:
    """An exchange between buses: energy [T] from `source` to `target`, and back, at a cost."""

    name: str
    source: int
    target: int
    capacity: list[float]
    reverse: list[float]
    cost: float


@dataclass(frozen=True)
class Case:
    """A case of T stages, H hydros, B buses and K_t openings in stage t.

    `demand` has the shape [T][K_t][B], `inflows` [T][K_t][H], `probabilities` [T][K_t]. All costs
    of stage t count by the factor `discount[t]`. `known` is the optimum that the file states, or
    None; with `known_is_bound` it is only a lower bound.
    """

    name: str
    stages: int
    hydros: list[Hydro]
    thermals: list[Thermal]
    buses: list[Bus]
    lines: list[Line]
    demand: list[list[list[float]]]
    inflows: list[list[list[float]]]
    probabilities: list[list[float]]
    discount: list[float]
    known: float | None
    known_is_bound: bool
