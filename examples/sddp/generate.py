"""Write a random case of any size: seeded, and always feasible.

    python generate.py case.json --hydros 4 --thermals 3 --stages 12 --openings 10 --seed 7

Feasible because inflows are not negative, a reservoir starts at or above its least volume, spill
is not bounded and unmet demand may be paid for.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np


def make_hydros(rng: np.random.Generator, count: int, segments: bool) -> list[dict[str, Any]]:
    """Return `count` reservoirs in trees: water flows to a higher index or to the sea."""
    hydros = []
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
        if segments:
            best = hydro["productivity"]
            hydro["segments"] = [
                {"qmax": round(qmax * part, 3), "productivity": round(best * factor, 3)}
                for part, factor in ((0.6, 1.1), (0.25, 1.0), (0.15, 0.7))
            ]
        hydros.append(hydro)
    return hydros


def make_thermals(
    rng: np.random.Generator, count: int, stages: int, stage_cost: bool
) -> list[dict[str, Any]]:
    """Return `count` plants of rising cost."""
    thermals = []
    cost = 10.0
    for g in range(count):
        cost += float(rng.uniform(8.0, 40.0))
        season = 1.0 + 0.2 * np.sin(2.0 * np.pi * (np.arange(stages) + g) / 12.0)
        costs = [round(cost * float(s), 2) for s in season]
        thermals.append(
            {
                "name": f"T{g}",
                "capacity": round(float(rng.uniform(60.0, 130.0)), 3),
                "cost": costs if stage_cost else round(cost, 2),
            }
        )
    return thermals


def make_inflows(
    rng: np.random.Generator, hydros: int, stages: int, counts: list[int]
) -> list[list[list[float]]]:
    """Return lognormal seasonal inflows; openings are wet or dry for all reservoirs together."""
    mean = rng.uniform(10.0, 40.0, hydros)
    inflows = []
    for t in range(stages):
        season = 1.0 + 0.5 * np.cos(2.0 * np.pi * t / 12.0)
        common = rng.normal(0.0, 0.4, counts[t])[:, None]
        own = rng.normal(0.0, 0.25, (counts[t], hydros))
        inflows.append(np.round(mean * season * np.exp(common + own), 3).tolist())
    return inflows


def make_probabilities(
    rng: np.random.Generator, counts: list[int], uneven: bool
) -> list[list[float]]:
    """Return a row of probabilities per stage, equal or not."""
    if not uneven:
        return [[1.0 / k] * k for k in counts]
    return [(w / w.sum()).tolist() for w in (rng.uniform(0.2, 1.0, k) for k in counts)]


def make_demand(rng: np.random.Generator, case: dict[str, Any], random_demand: bool) -> None:
    """Add a demand that water and most of the thermal plants can meet on average."""
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


def generate(
    hydros: int,
    thermals: int,
    stages: int,
    openings: int,
    seed: int = 0,
    *,
    segments: bool = False,
    random_demand: bool = False,
    stage_cost: bool = False,
    uneven: bool = False,
    fixed_first: bool = False,
) -> dict[str, Any]:
    """Return a case in the schema of README.md; equal arguments give equal cases."""
    rng = np.random.default_rng(seed)
    counts = [1 if fixed_first and t == 0 else openings for t in range(stages)]
    case: dict[str, Any] = {
        "name": f"random_h{hydros}_g{thermals}_t{stages}_k{openings}_s{seed}",
        "description": "random, seeded",
        "stages": stages,
        "hydros": make_hydros(rng, hydros, segments),
        "thermals": make_thermals(rng, thermals, stages, stage_cost),
        "deficit_cost": 1000.0,
        "inflows": make_inflows(rng, hydros, stages, counts),
        "probabilities": make_probabilities(rng, counts, uneven),
        "discount": 1.0,
        "terminal_value": 0.0,
        "published": None,
    }
    make_demand(rng, case, random_demand)
    present = {
        "cascade": any(h["downstream"] >= 0 for h in case["hydros"]),
        "stage_cost": stage_cost and thermals > 0,
        "random_demand": random_demand,
        "segments": segments,
        "random_stage1": counts[0] > 1,
        "deterministic": max(counts) == 1,
    }
    case["features"] = [name for name, there in present.items() if there]
    return case


def main(argv: list[str]) -> int:
    """Write the case that the command line describes."""
    parser = argparse.ArgumentParser(prog="generate.py", description="Write a random case.")
    parser.add_argument("out", type=Path)
    for name, least, default in (
        ("hydros", 1, 4),
        ("thermals", 0, 3),
        ("stages", 1, 6),
        ("openings", 1, 4),
        ("seed", 0, 0),
    ):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"at least {least}")
        parser.set_defaults(**{f"least_{name}": least})
    for name in ("segments", "random-demand", "stage-cost", "uneven", "fixed-first"):
        parser.add_argument(f"--{name}", action="store_true")
    options = vars(parser.parse_args(argv))
    out = options.pop("out")
    for name in ("hydros", "thermals", "stages", "openings", "seed"):
        if options[name] < options.pop(f"least_{name}"):
            parser.error(f"--{name} is too small: {options[name]}")
    try:
        out.write_text(json.dumps(generate(**options), indent=1) + "\n")
    except OSError as error:
        parser.error(f"cannot write {out}: {error.strerror}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
