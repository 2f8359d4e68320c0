"""Write a case as a folder of Cobre's, with the openings of the case.

Both programs then solve the same stage problems. A stage lasts as long as one m3/s takes to bring
one unit of water, so that numbers keep their size; costs per MWh are divided by its hours.
"""

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from case.data import Case, Hydro

HOURS = 1e6 / 3600.0  # in which 1 m3/s brings 1 hm3
START = "2000-01-01"
FORBIDDEN = 1e6  # the price of what the case has no variable for
MARGIN = 1.001  # the power of a hydro must not bind before its turbine does
VIOLATIONS = (
    "diversion",
    "evaporation_violation",
    "filling_target_violation",
    "generation_violation_below",
    "outflow_violation_above",
    "outflow_violation_below",
    "storage_violation_below",
    "turbined_violation_below",
    "water_withdrawal_violation",
)


class NotInCobre(Exception):
    """The case has a feature that this program does not write."""


def capacities(case: Case) -> list[list[float]]:
    """Return the capacities [T] of all plants."""
    turbines = [segment.qmax for plant in case.hydros for segment in plant.segments]
    return turbines + [plant.capacity for plant in case.thermals]


def check(case: Case) -> None:
    """Raise `NotInCobre` with a sentence for each feature that is not written."""
    missing = {
        "openings that differ in probability": any(np.ptp(p) > 1e-12 for p in case.probabilities),
        "demand that differs between openings": any(np.ptp(d, 0).any() for d in case.demand),
        "thermal costs that differ between stages": any(np.ptp(g.cost) for g in case.thermals),
        "several buses": len(case.buses) > 1,
        "a deficit in steps": any(len(bus.deficit) > 1 for bus in case.buses),
        "a price of excess energy": any(bus.excess_cost is not None for bus in case.buses),
        "limits of outflow": any(h.limits for h in case.hydros),
        "water that can be bought": any(h.water_cost is not None for h in case.hydros),
        "thermal plants that must run": any(any(g.least) for g in case.thermals),
        "capacities that differ between stages": any(np.ptp(c) for c in capacities(case)),
        "a discount": any(factor != 1.0 for factor in case.discount),
        "turbines with several segments": any(len(h.segments) > 1 for h in case.hydros),
    }
    told = [feature for feature, is_there in missing.items() if is_there]
    if told:
        raise NotInCobre(f"{case.name} is not written for Cobre, because it has {', '.join(told)}")


def config(forward_passes: int, iterations: int, selection: str | None) -> dict[str, Any]:
    """Return `config.json`: so many iterations, and the cut selection by its name, if any."""
    schemes = {name: {"scheme": "in_sample"} for name in ("inflow", "load", "ncs")}
    training = {
        "selection": {"method": "sampled", "forward_passes": forward_passes},
        "tree_seed": 1,
        "stopping_rules": [{"type": "iteration_limit", "limit": iterations}],
        "scenario_source": {"seed": 1, **schemes, "openings": {"source": "file"}},
    }
    if selection is not None:
        training["cut_selection"] = {"selection": {"method": selection}}
    return {
        "training": training,
        "simulation": {"enabled": False},
        "modeling": {"inflow_non_negativity": {"method": "none"}},
    }


def stages(case: Case) -> dict[str, Any]:
    """Return `stages.json`: a stage is a month by its dates, and lasts `HOURS`."""
    firsts = [f"{2000 + t // 12}-{t % 12 + 1:02d}-01" for t in range(case.stages + 1)]
    each = [
        {
            "id": t,
            "start_date": firsts[t],
            "end_date": firsts[t + 1],
            "blocks": [{"id": 0, "name": "all", "hours": HOURS}],
            "num_openings": len(case.probabilities[t]),
        }
        for t in range(case.stages)
    ]
    return {"policy_graph": {"type": "finite_horizon", "annual_discount_rate": 0.0}, "stages": each}


def penalties(case: Case) -> dict[str, Any]:
    """Return `penalties.json`."""
    deficit = [{"depth_mw": None, "cost": case.buses[0].deficit[0].cost / HOURS}]
    return {
        "bus": {"deficit_segments": deficit, "excess_cost": FORBIDDEN},
        "line": {"exchange_cost": 1.0},
        "hydro": {
            **{f"{name}_cost": FORBIDDEN for name in VIOLATIONS},
            "spillage_cost": 1.0,
            "turbined_cost": 0.0,
        },
        "non_controllable_source": {"curtailment_cost": 1.0},
    }


def hydro(index: int, plant: Hydro) -> dict[str, Any]:
    """Return an entry of `system/hydros.json`."""
    [turbine] = plant.segments
    power = turbine.qmax[0] * turbine.productivity * MARGIN
    limits = {
        "min_turbined_m3s": 0.0,
        "max_turbined_m3s": turbine.qmax[0],
        "min_generation_mw": 0.0,
        "max_generation_mw": power,
    }
    return {
        "id": index,
        "name": plant.name,
        "operational_start_date": START,
        "downstream_id": plant.downstream if plant.downstream >= 0 else None,
        "reservoir": {"min_storage_hm3": plant.vmin, "max_storage_hm3": plant.vmax},
        "outflow": {"min_outflow_m3s": 0.0, "max_outflow_m3s": None},
        "generation": {"model": "constant_productivity", **limits},
        "unit_groups": [{"id": 0, "name": "all", "bus_id": 0, **limits}],
        "penalties": {"spillage_cost": plant.spill_cost / HOURS},
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
    thermals = [
        {
            "id": index,
            "name": plant.name,
            "bus_id": 0,
            "operational_start_date": START,
            "generation": {"min_mw": 0.0, "max_mw": plant.capacity[0]},
            "cost_per_mwh": plant.cost[0] / HOURS,
        }
        for index, plant in enumerate(case.thermals)
    ]
    return {
        "buses": {"buses": [{"id": 0, "name": "all", "operational_start_date": START}]},
        "lines": {"lines": []},
        "thermals": {"thermals": thermals},
        "hydros": {"hydros": [hydro(*item) for item in enumerate(case.hydros)]},
        "hydro_production_models": {
            "production_models": [production(*item) for item in enumerate(case.hydros)]
        },
    }


def write_table(path: Path, **columns: tuple[pa.DataType, Sequence[float]]) -> None:
    """Write a table; 0.18 reads no snappy."""
    arrays = {name: pa.array(values, kind) for name, (kind, values) in columns.items()}
    pq.write_table(pa.table(arrays), path, compression="zstd")


def write_scenarios(case: Case, folder: Path) -> None:
    """Write statistics, which must be there and are not used, and the openings."""
    whole, real, count = pa.int32(), pa.float64(), pa.uint32()
    pairs = list(product(range(len(case.hydros)), range(case.stages)))
    write_table(
        folder / "inflow_seasonal_stats.parquet",
        hydro_id=(whole, [h for h, _ in pairs]),
        stage_id=(whole, [t for _, t in pairs]),
        mean_m3s=(real, [0.0] * len(pairs)),
        std_m3s=(real, [1.0] * len(pairs)),
    )
    write_table(
        folder / "load_seasonal_stats.parquet",
        bus_id=(whole, [0] * case.stages),
        stage_id=(whole, range(case.stages)),
        mean_mw=(real, [demand[0][0] for demand in case.demand]),
        std_mw=(real, [0.0] * case.stages),
    )
    rows = [
        (t, k, h, inflow)
        for t, openings in enumerate(case.inflows)
        for k, inflows in enumerate(openings)
        for h, inflow in enumerate(inflows)
    ]
    stage, opening, entity, values = zip(*rows, strict=True)
    write_table(
        folder / "noise_openings.parquet",
        stage_id=(whole, stage),
        opening_index=(count, opening),
        entity_index=(count, entity),
        value=(real, values),
    )


def write_case(
    case: Case,
    folder: Path,
    forward_passes: int,
    iterations: int,
    selection: str | None = None,
) -> None:
    """Write a case as a folder of Cobre's.

    Parameters
    ----------
    case : Case
        Any case that `check` lets pass.
    folder : Path
        Is made if it is not there.
    forward_passes, iterations : int
        What Cobre is to do: it has no options for these.
    selection : str, optional
        Its method of cut selection, such as ``"dynamic"``; without it, every cut is a row.

    Raises
    ------
    NotInCobre
        If the case has a feature that is not written.
    """
    check(case)
    for part in ("system", "scenarios"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    storage = [{"hydro_id": h, "value_hm3": plant.v0} for h, plant in enumerate(case.hydros)]
    files = {
        "config": config(forward_passes, iterations, selection),
        "stages": stages(case),
        "penalties": penalties(case),
        "initial_conditions": {"storage": storage, "filling_storage": []},
        **{f"system/{name}": content for name, content in system(case).items()},
    }
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")
    write_scenarios(case, folder / "scenarios")
