"""The data of a hydrothermal case, with every shape spelled out.

T stages, H hydros, B buses. Numbers are per stage: water in units of a volume, energy, money.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Segment:
    """A part of a turbine: water up to `qmax` [T], energy per unit of water, the bus it feeds."""

    qmax: list[float]
    productivity: float
    bus: int


@dataclass(frozen=True)
class Limit:
    """Bounds [T] of a hydro's outflow, or of its turbines alone, and what a missed bound costs.

    `most` is infinite if there is no upper bound. The costs are per unit of water.
    """

    with_spill: bool
    least: list[float]
    most: list[float]
    below_cost: float
    above_cost: float


@dataclass(frozen=True)
class Hydro:
    """A reservoir and its turbine; `downstream` is the index of the hydro below it, or -1.

    Missing water can be bought at `water_cost`, unless this is None.
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
    """A thermal plant: the least and the most energy [T] that its bus gets, and the cost [T]."""

    name: str
    bus: int
    least: list[float]
    capacity: list[float]
    cost: list[float]


@dataclass(frozen=True)
class Step:
    """A step of a deficit: its price, and its energy [T], which is infinite in the last step."""

    cost: float
    depth: list[float]


@dataclass(frozen=True)
class Bus:
    """A place where energy balances: the steps of its deficit, and the price of any excess."""

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
