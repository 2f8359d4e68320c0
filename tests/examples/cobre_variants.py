"""Cobre's cases, changed to use more features of Cobre at once; `bounds.json` has their bounds.

`python cobre_variants.py` (with cobre-python 0.5.1 and pyarrow) prints these bounds.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

CASES = Path(__file__).parent / "cobre_cases"
BOUNDS = json.loads((CASES / "bounds.json").read_text())
BLOCKS = (200.0, 344.0, 144.0), (250.0, 310.0, 184.0)
NEGATIVE = "config", "modeling", "inflow_non_negativity"


def edit(folder, file, change):
    """Change the content of a JSON file, which need not exist yet."""
    path = folder / f"{file}.json"
    content = json.loads(path.read_text()) if path.exists() else {}
    change(content)
    path.write_text(json.dumps(content))


def put(folder, file, *path, **fields):
    """Change fields of the object at a path in a JSON file, which need not exist yet."""

    def change(content):
        for step in path:
            content = content[step]
        content.update(fields)

    edit(folder, file, change)


def rows(folder, file, **columns):
    """Write a Parquet file with these columns."""
    path = folder / f"{file}.parquet"
    path.parent.mkdir(exist_ok=True)
    kinds = {"value": pa.float64(), "opening_index": pa.uint32(), "entity_index": pa.uint32()}
    arrays = {
        name: pa.array(
            values, kinds.get(name, pa.int32() if name.endswith("_id") else pa.float64())
        )
        for name, values in columns.items()
    }
    pq.write_table(pa.table(arrays), path, compression="zstd")


def statistics(folder, hydros, buses, stages, mean, std):
    """Write means and deviations as `mean(kind, entity, t)` and `std(kind, entity, t)` say."""
    kinds = ("inflow", "hydro_id", "m3s", hydros), ("load", "bus_id", "mw", buses)
    for kind, key, unit, count in kinds:
        pairs = [(e, t) for e in range(count) for t in range(stages)]
        rows(
            folder,
            f"scenarios/{kind}_seasonal_stats",
            **{
                key: [e for e, _ in pairs],
                "stage_id": [t for _, t in pairs],
                f"mean_{unit}": [mean(kind, e, t) for e, t in pairs],
                f"std_{unit}": [std(kind, e, t) for e, t in pairs],
            },
        )


def grid(folder):
    """Two buses in three blocks, with data that differ by stage and by block."""

    def stages(content):
        content["policy_graph"]["annual_discount_rate"] = 0.2
        for stage, hours in zip(content["stages"], BLOCKS, strict=True):
            stage["blocks"] = [
                {"id": k, "name": str(k), "hours": length} for k, length in enumerate(hours)
            ]
        content["stages"][1]["blocks"].pop()

    def buses(content):
        steps = {"depth_mw": 4.0, "cost": 300.0}, {"depth_mw": None, "cost": 900.0}
        content["buses"][1]["deficit_segments"] = list(steps)

    def thermals(content):
        content["thermals"][0]["generation"] = {"min_mw": 3.0, "max_mw": 30.0}
        content["thermals"].append(
            {
                "id": 1, "name": "T1", "bus_id": 1, "cost_per_mwh": 70.0,
                "generation": {"min_mw": 6.0, "max_mw": 9.0},
            }
        )  # fmt: skip

    def factors(key, values):
        return [
            {
                key: 0,
                "stage_id": t,
                "block_factors": [{"block_id": k, **values(t, k)} for k in (0, 1)],
            }
            for t in (0, 1)
        ]

    edit(folder, "stages", stages)
    edit(folder, "system/buses", buses)
    edit(folder, "system/thermals", thermals)
    put(folder, "system/lines", "lines", 0, exchange_cost=2.0)
    load = factors("bus_id", lambda t, k: {"factor": 0.7 + 0.4 * k + 0.1 * t})
    put(folder, "scenarios/load_factors", load_factors=load)
    (folder / "constraints").mkdir()
    exchange = factors(
        "line_id", lambda t, k: {"direct_factor": 0.5 + 0.2 * k, "reverse_factor": 1.0 - 0.3 * t}
    )
    put(folder, "constraints/exchange_factors", exchange_factors=exchange)
    models = [
        {
            "hydro_id": 1, "selection_mode": "stage_ranges",
            "stage_ranges": [
                {"start_stage_id": 1, "end_stage_id": None, "model": "constant_productivity",
                 "productivity_override": 1.3}
            ],
        }
    ]  # fmt: skip
    put(folder, "system/hydro_production_models", production_models=models)
    one = {"stage_id": [1]}
    rows(folder, "constraints/line_bounds", line_id=[0], **one, direct_mw=[20.0], reverse_mw=[12.0])
    rows(folder, "constraints/thermal_bounds", thermal_id=[0], **one, cost_per_mwh=[65.0])
    rows(folder, "constraints/hydro_bounds", hydro_id=[0], **one, max_turbined_m3s=[35.0])
    inflow, load = (lambda e, t: 12.0 + 6.0 * e + t), (lambda e, t: 50.0 - 9.0 * e)
    statistics(
        folder, 2, 2, 2, lambda kind, *at: (inflow if kind == "inflow" else load)(*at),
        lambda *_: 0.0,
    )  # fmt: skip


def river(folder):
    """A cascade with limits of every kind, withdrawals, and inflows that may be negative."""

    def hydros(content):
        upper, lower = content["hydros"]
        upper["outflow"]["min_outflow_m3s"] = 22.0
        upper["generation"] |= {"min_turbined_m3s": 14.0, "productivity_mw_per_m3s": 0.8}
        lower["outflow"]["max_outflow_m3s"] = 26.0
        lower["generation"] |= {"min_generation_mw": 25.0, "productivity_mw_per_m3s": 0.9}
        lower["penalties"] = {"generation_violation_below_cost": 35.0, "spillage_cost": 0.03}

    def hours(content):
        for t, stage in enumerate(content["stages"]):
            stage["blocks"][0]["hours"] = 600.0 + 90.0 * t

    edit(folder, "stages", hours)
    edit(folder, "system/hydros", hydros)
    put(
        folder, "penalties", "hydro", outflow_violation_below_cost=60.0,
        outflow_violation_above_cost=21.0, turbined_violation_below_cost=45.0,
        inflow_nonnegativity_cost=90.0,
    )  # fmt: skip
    put(folder, *NEGATIVE, method="truncation_with_penalty")
    put(folder, "initial_conditions", "storage", 1, value_hm3=9.0)
    rows(
        folder, "constraints/hydro_bounds", hydro_id=[0, 1], stage_id=[1, 2],
        water_withdrawal_m3s=[9.0, 2.0], min_outflow_m3s=[None, 30.0],
    )  # fmt: skip
    statistics(
        folder, 2, 1, 3, lambda kind, e, t: 60.0 if kind == "load" else 9.0 * e - 4.0 * t + 3.0,
        lambda *_: 0.0,
    )  # fmt: skip


def noise(folder):
    """Openings in which inflows and demand vary, and are cut off at zero."""
    count, stages, width = 4, 2, 2

    def more(content):
        for stage in content["stages"]:
            stage["num_scenarios"] = count

    edit(folder, "stages", more)
    put(folder, *NEGATIVE, method="truncation")
    put(folder, "initial_conditions", "storage", 0, value_hm3=20.0)
    statistics(
        folder, 1, 1, stages, lambda kind, e, t: 60.0 if kind == "load" else 15.0 + 5.0 * t,
        lambda kind, e, t: 40.0 * t if kind == "load" else 25.0,
    )  # fmt: skip
    each = [(t, k, e) for t in range(stages) for k in range(count) for e in range(width)]
    rows(
        folder,
        "scenarios/noise_openings",
        stage_id=[t for t, _, _ in each],
        opening_index=[k for _, k, _ in each],
        entity_index=[e for _, _, e in each],
        value=[(7 * t + 5 * k + 3 * e) % 11 / 3.0 - 1.7 for t, k, e in each],
    )


VARIANTS = {
    "grid": ("d04-transmission", grid),
    "river": ("d03-two-hydro-cascade", river),
    "noise": ("d02-single-hydro", noise),
}


def make_variant(name, target):
    """Write a variant to the folder `target`, and return the folder."""
    base, change = VARIANTS[name]
    shutil.copytree(CASES / base, target)
    change(target)
    return target


def first_stages(folder, target, count):
    """Write the first stages of a case to the folder `target`, and return the folder."""
    shutil.copytree(folder, target)
    edit(target, "stages", lambda content: content.update(stages=content["stages"][:count]))
    for path in (target / "scenarios").glob("*.parquet"):
        table = pq.read_table(path)
        kept = [t < count for t in table["stage_id"].to_pylist()]
        pq.write_table(table.filter(pa.array(kept)), path, compression="zstd")
    return target


if __name__ == "__main__":
    import cobre

    for name in sys.argv[1:] or VARIANTS:
        with tempfile.TemporaryDirectory() as scratch:
            folder = make_variant(name, Path(scratch) / name)
            rule = {"type": "iteration_limit", "limit": 100}
            put(folder, "config", "training", stopping_rules=[rule])
            done = cobre.run.run(str(folder), output_dir=str(folder / "output"), threads=1)
            print(name, repr(done["lower_bound"]))
