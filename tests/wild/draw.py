"""Draw the case of a number; a number gives the same case on every machine."""

import json
from dataclasses import dataclass, replace

import numpy as np
from case.random_case import Shape, generate
from case.read import parse_case
from stage.columns import columns_of

from tests.wild.oddities import (
    FAR_APART,
    FOR_COBRE,
    ODDITIES,
    cascades_in_other_units,
    deficits,
    scale,
    spill_costs_more_than_all,
    turbines,
)

ITERATIONS = 20
MOST_COLUMNS = 20_000  # the most columns of an extensive form that HiGHS is given
STAGES = 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5  # the number of stages of a small tree
ORDERS = 3.0  # a unit is a power of 10, from 10**-3 to 10**3
ORDERS_FOR_COBRE = 0.5  # fewer, because the penalties in a folder of Cobre's are absolute


@dataclass(frozen=True)
class Drawn:
    """A case: `data` in units near one, and the units of water, energy and money of its file.

    The unit of water is one number for all hydros, or a number for each hydro.
    """

    number: int
    data: dict
    units: tuple
    passes: int
    oddities: list

    def plain(self):
        """Return the case in units near one."""
        return parse(self.data)

    def case(self):
        """Return the case in the units of its file."""
        return parse(self.written())

    def written(self):
        """Return the data of a case file."""
        return in_units(self.data, *self.units)

    @property
    def is_small(self):
        """Tell whether the extensive form is small enough to be solved."""
        case = self.plain()
        nodes = np.cumprod([float(len(p)) for p in case.probabilities]).sum()
        return bool(nodes * (columns_of(case).end - 1) <= MOST_COLUMNS)


def parse(data):
    return parse_case(json.dumps(data).encode(), "case.json")


def draw(number):
    """Return case `number`, of 4 to 60 hydros; about half of all cases have a small tree."""
    rng = np.random.default_rng([29, number])
    small = bool(rng.random() < 0.5)
    while True:
        hydros, thermals = int(4.0 * 15.0 ** rng.random()), int(rng.integers(0, 13))
        if small:
            stages, openings = int(rng.choice(STAGES)), int(rng.integers(1, 6))
        else:
            stages, openings = int(rng.integers(3, 13)), int(rng.integers(2, 9))
        optional = (bool(drawn) for drawn in rng.random(6) < 0.3)
        buses = int(rng.choice([1, 1, 1, 2, 3, 5]))
        shape = Shape(hydros, thermals, stages, openings, *optional, buses=buses)
        drawn = wild(rng, number, shape, ODDITIES, ORDERS)
        if drawn.is_small == small:
            return far_apart(np.random.default_rng([37, number]), drawn)


def far_apart(rng, drawn):
    """Return a case like a drawn one, in which some numbers may be far apart."""
    data, (water, *others) = json.loads(json.dumps(drawn.data)), drawn.units
    chosen = list(drawn.oddities)
    if rng.random() < FAR_APART:
        spill_costs_more_than_all(rng, data)
        chosen.append(spill_costs_more_than_all.__name__)
    if rng.random() < FAR_APART:
        water = tuple(water * factor for factor in cascades_in_other_units(rng, data))
        chosen.append(cascades_in_other_units.__name__)
    return replace(drawn, data=data, units=(water, *others), oddities=chosen)


def draw_for_cobre(number):
    """Return case `number` to compare with Cobre: it has only what a folder of Cobre's may have."""
    rng = np.random.default_rng([31, number])
    while True:
        hydros, thermals = int(rng.integers(4, 21)), int(rng.integers(1, 9))
        stages, openings = int(rng.integers(3, 6)), int(rng.integers(2, 5))
        shape = Shape(hydros, thermals, stages, openings, fixed_first=bool(rng.random() < 0.3))
        drawn = wild(rng, number, shape, FOR_COBRE, ORDERS_FOR_COBRE)
        if drawn.is_small:
            return drawn


def wild(rng, number, shape, oddities, orders):
    """Return a case of that shape, with drawn oddities and drawn units."""
    data = generate(shape, int(rng.integers(0, 10**6)))
    chosen = []
    for odd in [odd for odd, p in oddities.items() if rng.random() < p]:
        before = json.dumps(data)
        odd(rng, data)
        after = json.dumps(data)
        if after != before:
            chosen.append(odd.__name__)
        data = json.loads(after)  # so that no list is in two parts of the data
    drawn = (float(10.0 ** rng.uniform(-orders, orders)) for _ in range(3))
    units = tuple(drawn) if rng.random() < 0.7 else (1.0, 1.0, 1.0)
    data["name"] = f"wild_{number}_{data['name']}"
    return Drawn(number, data, units, int(rng.choice([4, 8])), chosen)


def in_units(data, water, energy, money):
    """Return `data` in other units; `water` is one number, or a number for each hydro."""
    data = json.loads(json.dumps(data))
    lines, buses = data.get("lines", []), data.get("buses", [])
    water = np.broadcast_to(water, len(data["hydros"]))
    for hydro, unit in zip(data["hydros"], water, strict=True):
        scale([hydro], ("vmin", "vmax", "v0"), unit)
        scale([hydro], ("spill_cost", "water_cost"), money / unit)
        scale(hydro.get("limits", []), ("least", "most"), unit)
        scale(hydro.get("limits", []), ("below_cost", "above_cost"), money / unit)
        scale(turbines(hydro), ("qmax",), unit)
        scale(turbines(hydro), ("productivity",), energy / unit)
    scale(data["thermals"] + lines, ("capacity", "reverse", "least"), energy)
    scale(deficits(data), ("depth",), energy)
    prices = data["thermals"] + lines + buses + deficits(data)
    scale(prices, ("cost", "excess_cost"), money / energy)
    scale([data], ("deficit_cost",), money / energy)
    for name, unit in (("inflows", water), ("demand", energy), ("demand_outcomes", energy)):
        if name in data:
            data[name] = [(np.array(stage) * unit).tolist() for stage in data[name]]
    return data
