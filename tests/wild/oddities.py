"""What makes a case wild: each oddity changes the data of a case, and the case stays feasible."""

import numpy as np


def some(rng, items):
    """Return about a third of the items; if none is drawn, return the first one or two."""
    items = list(items)
    chosen = [item for item in items if rng.random() < 0.3]
    return chosen or items[: rng.integers(1, 3)]


def give(items, **fields):
    """Set these fields of all items."""
    for item in items:
        item.update(fields)


def scale(items, names, factor):
    """Multiply these fields, where an item has them; a field has a number or lists of numbers."""
    for item in items:
        for name in names:
            if name in item:
                item[name] = (np.array(item[name]) * factor).tolist()


def turbines(hydro):
    """Return what has qmax and productivity: the hydro itself, and its segments."""
    return [hydro, *hydro.get("segments", [])]


def limits(data):
    """Return the limits of all hydros."""
    return [limit for hydro in data["hydros"] for limit in hydro.get("limits", [])]


def deficits(data):
    """Return the steps of the deficit of every bus."""
    return [step for bus in data.get("buses", []) for step in bus["deficit"]]


def highest_price(data):
    """Return the highest price of a deficit."""
    return max([data.get("deficit_cost", 0.0), *(step["cost"] for step in deficits(data))])


def energy_without_price(rng, data):
    give(deficits(data), cost=0.0)
    if "deficit_cost" in data:
        data["deficit_cost"] = 0.0


def nothing_costs(rng, data):
    energy_without_price(rng, data)
    give(data["thermals"], cost=0.0)
    give(data["hydros"], spill_cost=0.0)
    give(limits(data), below_cost=0.0, above_cost=0.0)
    give(data.get("lines", []), cost=0.0)
    give(data.get("buses", []), excess_cost=0.0)


# Costs that are equal or zero.


def deficit_costs_no_more_than_plants(rng, data):
    give(data["thermals"], cost=highest_price(data))


def plants_cost_the_same(rng, data):
    give(data["thermals"], cost=round(float(rng.uniform(1.0, 99.0)), 1))


def plants_cost_nothing(rng, data):
    give(some(rng, data["thermals"]), cost=0.0)


def spill_costs_nothing(rng, data):
    give(data["hydros"], spill_cost=0.0)


def some_spill_costs_nothing(rng, data):
    give(some(rng, data["hydros"]), spill_cost=0.0)


def spill_is_dear(rng, data):
    give(some(rng, data["hydros"]), spill_cost=10.0 * highest_price(data))


def lines_cost_nothing(rng, data):
    give(data.get("lines", []), cost=0.0)


def excess_costs_nothing(rng, data):
    give(data.get("buses", []), excess_cost=0.0)


def deficit_has_equal_steps(rng, data):
    give(deficits(data), cost=highest_price(data))


def limits_cost_nothing(rng, data):
    give(some(rng, limits(data)), below_cost=0.0, above_cost=0.0)


def costs_are_discounted(rng, data):
    factors = np.round(rng.uniform(0.2, 1.0, data["stages"]), 3).tolist()
    data["discount"] = 0.9 if rng.random() < 0.5 else factors


# Bounds that are tight or equal.


def volume_is_fixed(rng, data):
    for hydro in some(rng, data["hydros"]):
        hydro["vmin"] = hydro["vmax"] = hydro["v0"]


def no_reservoir(rng, data):
    give(some(rng, data["hydros"]), vmin=0.0, vmax=0.0, v0=0.0)


def volume_starts_at_a_bound(rng, data):
    for hydro in some(rng, data["hydros"]):
        hydro["v0"] = hydro["vmin"] if rng.random() < 0.5 else hydro["vmax"]


def volume_has_little_room(rng, data):
    for hydro in some(rng, data["hydros"]):
        hydro["vmin"], hydro["vmax"] = hydro["v0"], hydro["v0"] * (1.0 + 1e-9)


def no_turbine(rng, data):
    for hydro in some(rng, data["hydros"]):
        give(turbines(hydro), qmax=0.0)


def no_energy_from_water(rng, data):
    for hydro in some(rng, data["hydros"]):
        give(turbines(hydro), productivity=0.0)


def no_capacity(rng, data):
    give(some(rng, data["thermals"]), capacity=0.0, least=0.0)


def plants_must_run(rng, data):
    if "buses" in data:  # only a case with buses may have too much energy
        for plant in some(rng, data["thermals"]):
            plant["least"] = plant["capacity"]


def outflow_is_fixed(rng, data):
    for limit in some(rng, limits(data)):
        limit["most"] = limit["least"]


def lines_carry_nothing(rng, data):
    give(some(rng, data.get("lines", [])), capacity=0.0, reverse=0.0)


def deficit_has_an_empty_step(rng, data):
    give(some(rng, [step for step in deficits(data) if "depth" in step]), depth=0.0)


# Ties between choices.


def equal_hydros(rng, data):
    own = "name", "downstream", "bus"
    same = {name: value for name, value in data["hydros"][0].items() if name not in own}
    give(data["hydros"], **same)
    if rng.random() < 0.5:
        count = len(data["hydros"])
        data["inflows"] = [[[row[0]] * count for row in stage] for stage in data["inflows"]]


def equal_plants(rng, data):
    own = "name", "bus"
    for plant in data["thermals"]:
        plant.update({k: v for k, v in data["thermals"][0].items() if k not in own})


def equal_openings(rng, data):
    data["inflows"] = [[stage[0]] * len(stage) for stage in data["inflows"]]


def equal_stages(rng, data):
    for name in ("inflows", "demand", "demand_outcomes", "probabilities"):
        if len({len(stage) for stage in data["probabilities"]}) == 1 and name in data:
            data[name] = [data[name][0]] * data["stages"]


# Water and demand.


def no_inflow_to_some(rng, data):
    for h in some(rng, range(len(data["hydros"]))):
        for row in (row for stage in data["inflows"] for row in stage):
            row[h] = 0.0


def no_inflow_in_some_stages(rng, data):
    for t in some(rng, range(data["stages"])):
        data["inflows"][t] = np.zeros_like(data["inflows"][t]).tolist()


def no_inflow(rng, data):
    data["inflows"] = [np.zeros_like(stage).tolist() for stage in data["inflows"]]


def water_is_lost(rng, data):
    """Let more water evaporate than flows in, if missing water can be bought."""
    for h in some(rng, [h for h, hydro in enumerate(data["hydros"]) if "water_cost" in hydro]):
        for row in (row for stage in data["inflows"] for row in stage):
            row[h] *= -0.2


def flood(rng, data):
    data["inflows"] = [(np.array(stage) * 30.0).tolist() for stage in data["inflows"]]


def much_demand(rng, data):
    factor = float(rng.uniform(1.5, 3.0))
    for name in ("demand", "demand_outcomes"):
        if name in data:
            data[name] = [(np.array(stage) * factor).tolist() for stage in data[name]]


def no_demand_in_some_stages(rng, data):
    for t in some(rng, range(data["stages"])):
        for name in ("demand", "demand_outcomes"):
            if name in data:
                data[name][t] = np.zeros_like(data[name][t]).tolist()


def an_opening_never_comes(rng, data):
    for t, stage in enumerate(data["probabilities"]):
        if len(stage) > 1:
            rest = sum(stage[1:])
            data["probabilities"][t] = [0.0, *(p / rest for p in stage[1:])]


def sizes_differ(rng, data):
    """Multiply all water of each hydro by a number of its own, over three orders of magnitude."""
    for h, hydro in enumerate(data["hydros"]):
        factor = float(10.0 ** rng.uniform(-1.5, 1.5))
        scale([hydro], ("vmin", "vmax", "v0"), factor)
        scale(turbines(hydro), ("qmax",), factor)
        scale(hydro.get("limits", []), ("least", "most"), factor)
        for row in (row for stage in data["inflows"] for row in stage):
            row[h] *= factor


def capacities_follow_the_seasons(rng, data):
    seasons = np.round(rng.choice([0.0, 0.5, 1.0, 1.0], data["stages"]), 3)
    for hydro in some(rng, data["hydros"]):
        scale(turbines(hydro), ("qmax",), seasons)
    for plant in some(rng, data["thermals"]):
        scale([plant], ("capacity", "least"), seasons)
    scale(some(rng, data.get("lines", [])), ("capacity",), seasons)


# Numbers far apart. They are drawn after all other numbers, so that the other numbers of a case
# stay what they were.


def spill_costs_more_than_all(rng, data):
    for hydro in some(rng, data["hydros"]):
        hydro["spill_cost"] = float(10.0 ** rng.uniform(6.0, 10.0))


def cascades_in_other_units(rng, data):
    """Return a factor for the water of each hydro: one per cascade, orders of magnitude apart."""
    orders = float(rng.uniform(0.0, 6.0))
    factors = 10.0 ** rng.uniform(-orders, orders, len(data["hydros"]))
    return [float(factors[last_of(data["hydros"], h)]) for h in range(len(data["hydros"]))]


def last_of(hydros, h):
    """Return the last hydro to which the water of hydro `h` flows."""
    while hydros[h]["downstream"] >= 0:
        h = hydros[h]["downstream"]
    return h


FOR_COBRE = {
    much_demand: 1.0,  # otherwise there is enough water, and the optimum is nearly zero
    deficit_costs_no_more_than_plants: 0.08,
    plants_cost_the_same: 0.08,
    plants_cost_nothing: 0.08,
    spill_costs_nothing: 0.12,
    some_spill_costs_nothing: 0.08,
    spill_is_dear: 0.06,
    volume_is_fixed: 0.12,
    no_reservoir: 0.1,
    volume_starts_at_a_bound: 0.15,
    volume_has_little_room: 0.06,
    no_turbine: 0.1,
    no_energy_from_water: 0.08,
    no_capacity: 0.1,
    equal_hydros: 0.12,
    equal_plants: 0.1,
    equal_openings: 0.06,
    equal_stages: 0.1,
    no_inflow_to_some: 0.1,
    no_inflow_in_some_stages: 0.06,
    no_inflow: 0.03,
    flood: 0.06,
    no_demand_in_some_stages: 0.08,
    sizes_differ: 0.15,
}
"""The probability of each oddity that a folder of Cobre's can have."""

ODDITIES = FOR_COBRE | {
    much_demand: 0.4,
    energy_without_price: 0.03,
    nothing_costs: 0.02,
    an_opening_never_comes: 0.06,
    costs_are_discounted: 0.1,
    lines_cost_nothing: 0.15,
    lines_carry_nothing: 0.15,
    excess_costs_nothing: 0.1,
    deficit_has_equal_steps: 0.1,
    deficit_has_an_empty_step: 0.1,
    limits_cost_nothing: 0.1,
    outflow_is_fixed: 0.15,
    plants_must_run: 0.1,
    water_is_lost: 0.2,
    capacities_follow_the_seasons: 0.1,
}
"""The probability of each oddity."""

FAR_APART = 0.15
"""The probability of `spill_costs_more_than_all`, and of `cascades_in_other_units`."""
