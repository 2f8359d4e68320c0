"""Random cases of any size, made from a seed, and always feasible.

They are feasible because inflows are not negative, a reservoir starts at or above its least volume,
spill is not bounded, and any deficit can be paid for, as can any excess if plants must run.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Shape:
    """The sizes of a random case, and its optional parts."""

    hydros: int
    thermals: int
    stages: int
    openings: int
    segments: bool = False  # every turbine has three segments, with less and less productivity
    random_demand: bool = False  # demand differs between openings
    stage_cost: bool = False  # thermal costs follow the seasons
    uneven: bool = False  # openings differ in probability
    fixed_first: bool = False  # the first stage has one opening
    limits: bool = False  # limits of outflow, plants that must run, and water that can be bought
    buses: int = 1  # buses are in a ring of lines, and have deficits of two steps


def make_hydros(rng: np.random.Generator, shape: Shape) -> list[dict[str, Any]]:
    """Return reservoirs in trees: water flows to a higher index or to the sea."""
    hydros, count = [], shape.hydros
    upstream = np.ones(count)
    for h in range(count):
        downstream = -1
        if h + 1 < count and rng.random() < 0.6:
            downstream = int(rng.integers(h + 1, min(h + 4, count)))
            upstream[downstream] += upstream[h]
        vmax = round(float(rng.uniform(70.0, 210.0)), 3)
        vmin = round(float(rng.uniform(0.0, 0.15)) * vmax, 3)
        qmax = round(float(rng.uniform(25.0, 60.0) * upstream[h]), 3)
        hydro = {
            "name": f"H{h}",
            "vmin": vmin,
            "vmax": vmax,
            "v0": round(vmin + float(rng.uniform(0.3, 0.7)) * (vmax - vmin), 3),
            "qmax": qmax,
            "productivity": round(float(rng.uniform(0.7, 1.3)), 3),
            "spill_cost": 0.01,
            "downstream": downstream,
        }
        if shape.segments:
            best = hydro["productivity"]
            hydro["segments"] = [
                {"qmax": round(qmax * part, 3), "productivity": round(best * factor, 3)}
                for part, factor in ((0.6, 1.1), (0.25, 1.0), (0.15, 0.7))
            ]
        hydros.append(hydro)
    return hydros


def make_thermals(rng: np.random.Generator, shape: Shape) -> list[dict[str, Any]]:
    """Return plants of rising cost."""
    thermals = []
    cost = 10.0
    for g in range(shape.thermals):
        cost += float(rng.uniform(8.0, 40.0))
        season = 1.0 + 0.2 * np.sin(2.0 * np.pi * (np.arange(shape.stages) + g) / 12.0)
        costs = [round(cost * float(s), 2) for s in season]
        thermals.append(
            {
                "name": f"T{g}",
                "capacity": round(float(rng.uniform(60.0, 130.0)), 3),
                "cost": costs if shape.stage_cost else round(cost, 2),
            }
        )
    return thermals


def make_inflows(
    rng: np.random.Generator, shape: Shape, counts: list[int]
) -> list[list[list[float]]]:
    """Return lognormal seasonal inflows; an opening is wet or dry for all reservoirs together."""
    mean = rng.uniform(10.0, 40.0, shape.hydros)
    inflows = []
    for t in range(shape.stages):
        season = 1.0 + 0.5 * np.cos(2.0 * np.pi * t / 12.0)
        common = rng.normal(0.0, 0.4, counts[t])[:, None]
        own = rng.normal(0.0, 0.25, (counts[t], shape.hydros))
        inflows.append(np.round(mean * season * np.exp(common + own), 3).tolist())
    return inflows


def make_probabilities(
    rng: np.random.Generator, counts: list[int], uneven: bool
) -> list[list[float]]:
    """Return the probabilities of each stage, equal or unequal."""
    if not uneven:
        return [[1.0 / k] * k for k in counts]
    return [(w / w.sum()).tolist() for w in (rng.uniform(0.2, 1.0, k) for k in counts)]


def make_demand(rng: np.random.Generator, case: dict[str, Any], random_demand: bool) -> None:
    """Add a demand that water and most thermal plants can meet on average."""
    stages = case["stages"]
    counts = [len(p) for p in case["probabilities"]]
    inflow = np.mean([np.mean(np.sum(rows, axis=1)) for rows in case["inflows"]])
    hydro = inflow * np.mean([h["productivity"] for h in case["hydros"]]) * 1.3
    level = hydro + 0.6 * sum(g["capacity"] for g in case["thermals"])
    season = 1.0 + 0.12 * np.sin(2.0 * np.pi * np.arange(stages) / 12.0)
    case["demand"] = np.round(level * season, 3).tolist()
    if random_demand:
        case["demand_outcomes"] = [
            np.round(d * rng.uniform(0.85, 1.15, k), 3).tolist()
            for d, k in zip(case["demand"], counts, strict=True)
        ]


def add_limits(rng: np.random.Generator, case: dict[str, Any]) -> None:
    """Give every second hydro limits of outflow, and a price of water; let thermal plants run."""
    for hydro in case["hydros"][::2]:
        least = round(float(rng.uniform(0.0, 0.3)) * hydro["qmax"], 3)
        prices = {"below_cost": 300.0, "above_cost": 150.0}
        wide = {"of": "outflow", "least": least, "most": round(1.1 * hydro["qmax"], 3)}
        narrow = {"of": "turbined", "least": round(0.5 * least, 3)}
        hydro["limits"] = [wide | prices, narrow | prices]
        hydro["water_cost"] = 2000.0
    for plant in case["thermals"][::2]:
        plant["least"] = round(0.2 * plant["capacity"], 3)


def split_by_bus(rng: np.random.Generator, case: dict[str, Any], count: int) -> None:
    """Divide plants and demand among `count` buses, which lines join into a ring."""
    for plant in case["hydros"] + case["thermals"]:
        plant["bus"] = int(rng.integers(count))
    part = rng.uniform(0.5, 1.5, count)
    part /= part.sum()
    level = float(np.max(case["demand"]))
    for name in ("demand", "demand_outcomes"):
        if name in case:
            split = [np.multiply.outer(row, part) for row in case[name]]
            case[name] = [np.round(row, 3).tolist() for row in split]
    price = case["buses"][0]["deficit"][0]["cost"]
    case["buses"] = [
        {
            "name": f"B{b}",
            "deficit": [{"cost": 0.6 * price, "depth": round(0.1 * level, 3)}, {"cost": price}],
            "excess_cost": 1.0,
        }
        for b in range(count)
    ]
    case["lines"] = [
        {
            "name": f"B{b}-B{(b + 1) % count}",
            "source": b,
            "target": (b + 1) % count,
            "capacity": round(float(rng.uniform(0.05, 0.3)) * level, 3),
            "reverse": round(float(rng.uniform(0.05, 0.3)) * level, 3),
            "cost": round(float(rng.uniform(0.0, 2.0)), 3),
        }
        for b in range(count if count > 2 else count - 1)
    ]


def generate(shape: Shape, seed: int = 0) -> dict[str, Any]:
    """Return a case in the schema of README.md; equal arguments give equal cases."""
    rng = np.random.default_rng(seed)
    stages, openings = shape.stages, shape.openings
    counts = [1 if shape.fixed_first and t == 0 else openings for t in range(stages)]
    case: dict[str, Any] = {
        "name": f"random_h{shape.hydros}_g{shape.thermals}_t{stages}_k{openings}_s{seed}",
        "description": "random, seeded",
        "stages": stages,
        "hydros": make_hydros(rng, shape),
        "thermals": make_thermals(rng, shape),
        "deficit_cost": 1000.0,
        "inflows": make_inflows(rng, shape, counts),
        "probabilities": make_probabilities(rng, counts, shape.uneven),
        "discount": 1.0,
        "terminal_value": 0.0,
        "published": None,
    }
    make_demand(rng, case, shape.random_demand)
    if shape.limits or shape.buses > 1:
        price = case.pop("deficit_cost")
        case["buses"] = [{"name": "B0", "deficit": [{"cost": price}], "excess_cost": 1.0}]
    if shape.limits:
        add_limits(rng, case)
    if shape.buses > 1:
        split_by_bus(rng, case, shape.buses)
    present = {
        "cascade": any(h["downstream"] >= 0 for h in case["hydros"]),
        "stage_cost": shape.stage_cost and shape.thermals > 0,
        "random_demand": shape.random_demand,
        "segments": shape.segments,
        "random_stage1": counts[0] > 1,
        "deterministic": max(counts) == 1,
        "limits": shape.limits,
        "buses": shape.buses > 1,
        "lines": shape.buses > 1,
    }
    case["features"] = [name for name, there in present.items() if there]
    return case
