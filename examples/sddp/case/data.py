"""The data of a hydrothermal case, every shape spelled out."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Segment:
    """A part of a turbine: water up to `qmax`, energy per unit of it."""

    qmax: float
    productivity: float


@dataclass(frozen=True)
class Hydro:
    """A reservoir and its turbine; `downstream` is the index of the receiver, or -1."""

    name: str
    vmin: float
    vmax: float
    v0: float
    segments: list[Segment]
    spill_cost: float
    downstream: int


@dataclass(frozen=True)
class Thermal:
    """A thermal plant; `cost` has one entry per stage."""

    name: str
    capacity: float
    cost: list[float]


@dataclass(frozen=True)
class Case:
    """A case of T stages, H hydros and K_t openings in stage t.

    `demand` and `probabilities` have the shape [T][K_t], `inflows` [T][K_t][H]. `known` is the
    optimum that the file states, or None; with `known_is_bound` it is only a lower bound.
    """

    name: str
    stages: int
    hydros: list[Hydro]
    thermals: list[Thermal]
    deficit_cost: float
    demand: list[list[float]]
    inflows: list[list[list[float]]]
    probabilities: list[list[float]]
    known: float | None
    known_is_bound: bool
