"""The system of a case in Cobre's files: buses, lines, plants, and what differs between stages.

A stage lasts as long as one m3/s takes to bring one unit of water, so that numbers keep their size.
Costs per MWh are divided by the hours of a stage.
"""

import math
from itertools import pairwise
from typing import Any

import numpy as np
from case.data import Bus, Case, Hydro

HOURS = 1e6 / 3600.0  # the hours in which 1 m3/s brings 1 hm3
START = "2000-01-01"
FORBIDDEN = 1e6  # the price of a violation for which the case has no variable
MARGIN = 1.001  # on a hydro's power, so that its most turbined water binds first
BOUNDS = {  # for each bound of a hydro, its column, and the field of its price
    ("outflow", "least"): ("min_outflow_m3s", "outflow_violation_below_cost"),
    ("outflow", "most"): ("max_outflow_m3s", "outflow_violation_above_cost"),
    ("turbined", "least"): ("min_turbined_m3s", "turbined_violation_below_cost"),
}
Table = dict[str, list[Any]]
"""The columns of a Parquet file of bounds, by name."""


def bounds_of(plant: Hydro) -> list[tuple[tuple[str, str], list[float], float]]:
    """Return the kind, values [T] and price of each bound of the outflow of a hydro."""
    bounds = []
    for limit in plant.limits:
        of = "outflow" if limit.with_spill else "turbined"
        if any(limit.least):
            bounds.append(((of, "least"), limit.least, limit.below_cost))
        if min(limit.most) < math.inf:
            bounds.append(((of, "most"), limit.most, limit.above_cost))
    return bounds


def not_written(case: Case) -> dict[str, bool]:
    """Return, for each feature that cannot be written, whether the system has it."""
    kinds = [[kind for kind, *_ in bounds_of(h)] for h in case.hydros]
    prices = {bus.excess_cost for bus in case.buses}
    water = [h.water_cost is None for h in case.hydros]
    return {
        "turbines with several segments": any(len(h.segments) > 1 for h in case.hydros),
        "most turbined water": any(("turbined", "most") in k for k in kinds),
        "several limits of one kind": any(len(set(k)) < len(k) for k in kinds),
        "limits in some stages only": any(
            math.inf in b for h in case.hydros for _, b, _ in bounds_of(h)
        ),
        "steps of a deficit that differ between stages": any(
            step.depth[0] < math.inf and np.ptp(step.depth) > 0.0
            for bus in case.buses
            for step in bus.deficit
        ),
        "steps of a deficit that do not rise in price": any(
            after.cost <= before.cost
            for bus in case.buses
            for before, after in pairwise(bus.deficit)
        ),
        "a deficit or an excess without a price": any(
            price == 0.0
            for bus in case.buses
            for price in (bus.excess_cost, *(step.cost for step in bus.deficit))
        ),
        "prices of an excess that differ between buses": len(prices) > 1,
        "water that some hydros can buy": any(water) and not all(water),
    }


def penalties(case: Case) -> dict[str, Any]:
    """Return `penalties.json`."""
    excess = case.buses[0].excess_cost
    highest = max(step.cost for bus in case.buses for step in bus.deficit)
    violations = (
        "diversion", "evaporation_violation", "filling_target_violation",
        "generation_violation_below", "outflow_violation_above", "outflow_violation_below",
        "storage_violation_below", "turbined_violation_below", "water_withdrawal_violation",
    )  # fmt: skip
    return {
        "bus": {
            "deficit_segments": deficit(case.buses[0]),
            "excess_cost": (10.0 * highest if excess is None else excess) / HOURS,
        },
        "line": {"exchange_cost": 1.0},
        "hydro": {
            **{f"{name}_cost": FORBIDDEN for name in violations},
            "spillage_cost": 1.0,
            "turbined_cost": 0.0,
        },
        "non_controllable_source": {"curtailment_cost": 1.0},
    }


def deficit(bus: Bus) -> list[dict[str, Any]]:
    """Return the steps of the deficit of a bus."""
    return [
        {
            "depth_mw": step.depth[0] if step.depth[0] < math.inf else None,
            "cost": step.cost / HOURS,
        }
        for step in bus.deficit
    ]


def hydro(index: int, plant: Hydro) -> dict[str, Any]:
    """Return an entry of `system/hydros.json`."""
    [turbine] = plant.segments
    bounds = {BOUNDS[kind][0]: values[0] for kind, values, _ in bounds_of(plant)}
    prices = {BOUNDS[kind][1]: price / HOURS for kind, _, price in bounds_of(plant)}
    if plant.water_cost is not None:
        prices["inflow_nonnegativity_cost"] = plant.water_cost / HOURS
    limits = {
        "max_turbined_m3s": max(turbine.qmax),
        "min_turbined_m3s": bounds.get("min_turbined_m3s", 0.0),
        "min_generation_mw": 0.0,
        "max_generation_mw": max(turbine.qmax) * turbine.productivity * MARGIN,
    }
    return {
        "id": index,
        "name": plant.name,
        "operational_start_date": START,
        "downstream_id": plant.downstream if plant.downstream >= 0 else None,
        "reservoir": {"min_storage_hm3": plant.vmin, "max_storage_hm3": plant.vmax},
        "outflow": {
            "min_outflow_m3s": bounds.get("min_outflow_m3s", 0.0),
            "max_outflow_m3s": bounds.get("max_outflow_m3s"),
        },
        "generation": {"model": "constant_productivity", **limits},
        "unit_groups": [{"id": 0, "name": "all", "bus_id": turbine.bus, **limits}],
        "penalties": {"spillage_cost": plant.spill_cost / HOURS, **prices},
    }


def production(index: int, plant: Hydro) -> dict[str, Any]:
    """Return an entry of `system/hydro_production_models.json`."""
    span = {
        "start_stage_id": 0,
        "end_stage_id": None,
        "model": "constant_productivity",
        "productivity_mw_per_m3s": plant.segments[0].productivity,
    }
    return {"hydro_id": index, "selection_mode": "stage_ranges", "stage_ranges": [span]}


def system(case: Case) -> dict[str, Any]:
    """Return the files of `system`, by name."""
    buses = [
        {
            "id": index,
            "name": bus.name,
            "operational_start_date": START,
            "deficit_segments": deficit(bus),
        }
        for index, bus in enumerate(case.buses)
    ]
    lines = [
        {
            "id": index,
            "name": line.name,
            "source_bus_id": line.source,
            "target_bus_id": line.target,
            "operational_start_date": START,
            "capacity": {"direct_mw": line.capacity[0], "reverse_mw": line.reverse[0]},
            "exchange_cost": line.cost / HOURS,
        }
        for index, line in enumerate(case.lines)
    ]
    thermals = [
        {
            "id": index,
            "name": plant.name,
            "bus_id": plant.bus,
            "operational_start_date": START,
            "generation": {"min_mw": plant.least[0], "max_mw": plant.capacity[0]},
            "cost_per_mwh": plant.cost[0] / HOURS,
        }
        for index, plant in enumerate(case.thermals)
    ]
    return {
        "buses": {"buses": buses},
        "lines": {"lines": lines},
        "thermals": {"thermals": thermals},
        "hydros": {"hydros": [hydro(*item) for item in enumerate(case.hydros)]},
        "hydro_production_models": {
            "production_models": [production(*item) for item in enumerate(case.hydros)]
        },
    }


def bounds_by_stage(case: Case) -> dict[str, Table]:
    """Return the tables of the folder `constraints`: bounds and costs that differ by stage."""
    flows = [{BOUNDS[kind][0]: values for kind, values, _ in bounds_of(h)} for h in case.hydros]
    # For turbines, Cobre reads the least flow only from the unit groups.
    groups = [{n: v for n, v in f.items() if n == "min_turbined_m3s"} for f in flows]
    hydros, thermals, lines = (
        [
            {"max_turbined_m3s": h.segments[0].qmax}
            | {n: v for n, v in flow.items() if n != "min_turbined_m3s"}
            for h, flow in zip(case.hydros, flows, strict=True)
        ],
        [
            {
                "min_generation_mw": g.least,
                "max_generation_mw": g.capacity,
                "cost_per_mwh": [cost / HOURS for cost in g.cost],
            }
            for g in case.thermals
        ],
        [{"direct_mw": line.capacity, "reverse_mw": line.reverse} for line in case.lines],
    )
    tables = {
        "hydro_bounds": _table("hydro_id", hydros, case.stages),
        "hydro_unit_group_bounds": _table("hydro_id", groups, case.stages),
        "thermal_bounds": _table("thermal_id", thermals, case.stages),
        "line_bounds": _table("line_id", lines, case.stages),
    }
    units = tables["hydro_unit_group_bounds"]
    if units:
        units["hydro_unit_group_id"] = [0] * len(units["hydro_id"])
    return {name: table for name, table in tables.items() if table}


def _table(key: str, entities: list[dict[str, list[float]]], stages: int) -> Table:
    """Return rows for those entities that have a value which differs between stages."""
    differ = {e: c for e, c in enumerate(entities) if any(np.ptp(v) for v in c.values())}
    names = sorted({name for columns in differ.values() for name in columns})
    if not differ:
        return {}
    pairs = [(e, t) for e in differ for t in range(stages)]
    return {
        key: [e for e, _ in pairs],
        "stage_id": [t for _, t in pairs],
        **{n: [differ[e][n][t] if n in differ[e] else None for e, t in pairs] for n in names},
    }
