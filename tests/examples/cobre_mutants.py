"""A folder of Cobre's changed in one place at a time, and what Cobre 0.18 makes of each change.

`python -m tests.wild --cobre PYTHON` asks the installed Cobre again.
"""

import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from case.read import parse_case
from cobre.write import write_case

from tests.examples.cobre_variants import edit, rows

REFUSED = None
PLAIN = 59591.406217394
"""The bound of the folder that is not changed."""
CASE = Path(__file__).parents[2] / "examples" / "sddp" / "cases" / "gen_h4_t5_k3.json"
INFLOW = "scenarios/inflow_seasonal_stats"
LOAD = "scenarios/load_seasonal_stats"
NOISE = "scenarios/noise_openings"
FACTORS = "scenarios/load_factors"
HYDRO_BOUNDS = "constraints/hydro_bounds"
GROUP_BOUNDS = "constraints/hydro_unit_group_bounds"
THERMAL_BOUNDS = "constraints/thermal_bounds"
MODELS = "system/hydro_production_models"
NAN = float("nan")


@dataclass(frozen=True)
class Mutant:
    """A change of a folder, the bound of Cobre, or `REFUSED`, and what our sentence says.

    Where ours is None, our bound is Cobre's.
    """

    change: Callable
    cobre: float | None
    ours: str | None


def write_base(folder):
    """Write the folder that is changed."""
    write_case(parse_case(CASE.read_bytes(), CASE.name), folder, 8, 100)


def make_mutant(base, name, target):
    """Write a mutant of the folder `base` to `target`, and return that."""
    shutil.copytree(base, target)
    MUTANTS[name].change(target)
    return target


def part(file, *path, **fields):
    """Return a change of the fields of the object at a path in a JSON file."""

    def change(content):
        for step in path:
            content = content[step]
        content.update(fields)

    return lambda folder: edit(folder, file, change)


def out(file, *path):
    """Return a change that takes the last step of a path out of a JSON file."""

    def change(content):
        for step in path[:-1]:
            content = content[step]
        content.pop(path[-1])

    return lambda folder: edit(folder, file, change)


def again(file, *path, **fields):
    """Return a change that appends an entry of a list once more, with other fields."""

    def change(content):
        for step in path[:-1]:
            content = content[step]
        content.append(content[path[-1]] | fields)

    return lambda folder: edit(folder, file, change)


def column(file, name, change, kind=None):
    """Return a change of the values of a column of a table, and of the type of the column."""

    def work(folder):
        path = folder / f"{file}.parquet"
        table = pq.read_table(path)
        where = table.schema.get_field_index(name)
        values = table.column(name).to_pylist()
        made = pa.array(change(values), kind or table.schema.field(name).type)
        pq.write_table(table.set_column(where, name, made), path, compression="zstd")

    return work


def cell(file, name, row, value):
    """Return a change of one value of a table."""
    return column(file, name, lambda values: [*values[:row], value, *values[row + 1 :]])


def table(file, change):
    """Return a change of the rows of a table, which are objects."""

    def work(folder):
        path = folder / f"{file}.parquet"
        before = pq.read_table(path)
        made = pa.Table.from_pylist(change(before.to_pylist()), schema=before.schema)
        pq.write_table(made, path, compression="zstd")

    return work


def without(file, name):
    """Return a change that drops a column of a table."""

    def work(folder):
        path = folder / f"{file}.parquet"
        pq.write_table(pq.read_table(path).drop_columns([name]), path, compression="zstd")

    return work


def new(file, **columns):
    """Return a change that writes a new table."""
    return lambda folder: rows(folder, file, **columns)


def bounds(file, entity, **columns):
    """Return a change that writes bounds of one entity in stage 1, or in other stages."""
    stages = columns.pop("stage_id", [1])
    entities = columns.pop(f"{entity}_id", [0] * len(stages))
    return new(file, **{f"{entity}_id": entities}, stage_id=stages, **columns)


def group_bounds(stages, **columns):
    """Return a change that writes bounds of the unit group of the first hydro in some stages."""
    count = len(stages)
    ids = {"hydro_id": [0] * count, "hydro_unit_group_id": [0] * count, "stage_id": stages}
    return new(GROUP_BOUNDS, **ids, **{name: [value] * count for name, value in columns.items()})


def dropped(file):
    """Return a change that deletes a file."""
    return lambda folder: (folder / file).unlink()


def text(file, before, after):
    """Return a change of the text of a file."""

    def work(folder):
        path = folder / file
        told = path.read_text()
        assert before in told
        path.write_text(told.replace(before, after))

    return work


def transitions(**fields):
    """Return a change that gives the chain of stages as transitions."""
    chain = [{"source_id": t, "target_id": t + 1, "probability": 1.0} | fields for t in range(4)]
    return part("stages", "policy_graph", transitions=chain)


def factors(bus=0, stage=0, block=0, factor=1.5, times=1):
    """Return a change that writes a factor of demand."""
    blocks = [{"block_id": block, "factor": factor}]
    entry = {"bus_id": bus, "stage_id": stage, "block_factors": blocks}
    return part(FACTORS, load_factors=[entry] * times)


def several(*changes):
    """Return all of some changes as one."""
    return lambda folder: [change(folder) for change in changes]


HYDRO = "system/hydros", "hydros", 0
GENERATION = *HYDRO, "generation"
GROUP = *HYDRO, "unit_groups", 0
THERMAL = "system/thermals", "thermals", 1
STEPS = "system/buses", "buses", 0, "deficit_segments"
VOLUME = "initial_conditions", "storage", 0
STAGE = "stages", "stages", 1
SPAN = MODELS, "production_models", 0, "stage_ranges", 0
LINE = {
    "id": 0, "name": "L", "source_bus_id": 0, "target_bus_id": 0,
    "operational_start_date": "2000-01-01", "capacity": {"direct_mw": 1.0, "reverse_mw": 1.0},
}  # fmt: skip
PRICED = part(*HYDRO, "penalties", turbined_violation_below_cost=500.0)
ALL = list(range(5))

MUTANTS = {
    "plain": Mutant(lambda folder: None, PLAIN, None),
    # Tables of statistics and openings.
    "mean_column_missing": Mutant(
        without(INFLOW, "mean_m3s"), REFUSED, f"{INFLOW}.parquet: mean_m3s: found nothing"
    ),
    "std_column_missing": Mutant(
        without(INFLOW, "std_m3s"), REFUSED, f"{INFLOW}.parquet: std_m3s: found nothing"
    ),
    "unknown_hydro": Mutant(
        column(INFLOW, "hydro_id", lambda ids: [h or 9 for h in ids]), REFUSED,
        f"{INFLOW}.parquet: hydro_id[0]: found 9, expected the number of a hydro",
    ),
    "unknown_stage": Mutant(
        column(INFLOW, "stage_id", lambda ids: [72 if t == 2 else t for t in ids]), REFUSED,
        f"{INFLOW}.parquet: stage_id[2]: found 72, expected the number of a stage",
    ),
    "row_twice": Mutant(
        table(INFLOW, lambda each: [*each, each[0] | {"mean_m3s": 500.0}]), 13994.694300662804,
        f"{INFLOW}.parquet: hydro_id[20], stage_id[20]: found 0 and 0, expected what no other",
    ),
    "row_missing": Mutant(
        table(INFLOW, lambda each: each[:-1]), REFUSED,
        f"{INFLOW}.parquet: hydro_id 3, stage_id 4: found no row",
    ),
    "null_std": Mutant(
        cell(INFLOW, "std_m3s", 0, None), PLAIN, f"{INFLOW}.parquet: std_m3s[0]: found null"
    ),
    "negative_std": Mutant(
        cell(INFLOW, "std_m3s", 0, -1.0), REFUSED, f"{INFLOW}.parquet: std_m3s[0]: found -1.0"
    ),
    "infinite_mean": Mutant(
        cell(INFLOW, "mean_m3s", 1, math.inf), REFUSED,
        f"{INFLOW}.parquet: mean_m3s[1]: found inf",
    ),
    "null_hydro": Mutant(
        cell(INFLOW, "hydro_id", 1, None), PLAIN, f"{INFLOW}.parquet: hydro_id[1]: found null"
    ),
    "hydro_as_int64": Mutant(
        column(INFLOW, "hydro_id", list, pa.int64()), REFUSED,
        f"{INFLOW}.parquet: hydro_id: found a column of int64, expected one of int32",
    ),
    "mean_as_float32": Mutant(
        column(INFLOW, "mean_m3s", list, pa.float32()), REFUSED,
        f"{INFLOW}.parquet: mean_m3s: found a column of float, expected one of double",
    ),
    "row_of_no_stage": Mutant(
        table(INFLOW, lambda each: [*each, each[0] | {"stage_id": 77}]), PLAIN,
        f"{INFLOW}.parquet: stage_id[20]: found 77",
    ),
    "rows_in_another_order": Mutant(table(INFLOW, lambda each: each[::-1]), PLAIN, None),
    "no_rows": Mutant(table(INFLOW, lambda each: []), 865610.7310999995, None),
    "no_inflows": Mutant(dropped(f"{INFLOW}.parquet"), 865610.7310999995, None),
    "load_row_missing": Mutant(
        table(LOAD, lambda each: each[:2] + each[3:]), REFUSED,
        f"{LOAD}.parquet: bus_id 0, stage_id 2: found no row",
    ),
    "load_std_column_missing": Mutant(
        without(LOAD, "std_mw"), REFUSED, f"{LOAD}.parquet: std_mw: found nothing"
    ),
    "load_of_unknown_bus": Mutant(
        table(LOAD, lambda each: [*each, each[0] | {"bus_id": 7}]), REFUSED,
        f"{LOAD}.parquet: bus_id[5]: found 7, expected the number of a bus",
    ),
    "load_twice": Mutant(
        table(LOAD, lambda each: [*each, each[0] | {"mean_mw": 5.0}]), PLAIN,
        f"{LOAD}.parquet: bus_id[5], stage_id[5]: found 0 and 0",
    ),
    "null_load": Mutant(
        cell(LOAD, "mean_mw", 1, None), 60451.62317739459,
        f"{LOAD}.parquet: mean_mw[1]: found null, expected a number",
    ),
    "negative_load": Mutant(
        cell(LOAD, "mean_mw", 1, -5.0), 73131.62394175435,
        f"{LOAD}.parquet: mean_mw[1]: found -5.0, expected at least 0",
    ),
    "fewer_openings": Mutant(
        part("stages", "stages", 2, num_openings=2), REFUSED,
        f"{NOISE}.parquet: opening_index, stage_id 2: found 3 openings, expected 2",
    ),
    "more_openings": Mutant(
        part("stages", "stages", 2, num_openings=9), REFUSED,
        f"{NOISE}.parquet: opening_index, stage_id 2: found 3 openings, expected 9",
    ),
    "nan_noise": Mutant(
        cell(NOISE, "value", 3, NAN), REFUSED, f"{NOISE}.parquet: value[3]: found nan"
    ),
    "null_noise": Mutant(
        cell(NOISE, "value", 3, None), 58169.3270946968, f"{NOISE}.parquet: value[3]: found null"
    ),
    "noise_missing": Mutant(
        table(NOISE, lambda each: each[:5] + each[6:]), REFUSED,
        f"{NOISE}.parquet: stage_id 0, opening_index 1, entity_index 1: found no row",
    ),
    "noise_twice": Mutant(
        table(NOISE, lambda each: [*each, each[0]]), REFUSED,
        f"{NOISE}.parquet: stage_id[60], opening_index[60], entity_index[60]: found 0 and 0 and 0",
    ),
    "noise_of_an_entity_twice": Mutant(
        cell(NOISE, "entity_index", 1, 0), PLAIN,
        f"{NOISE}.parquet: stage_id[1], opening_index[1], entity_index[1]: found 0 and 0 and 0",
    ),
    "noise_in_another_order": Mutant(table(NOISE, lambda each: each[::-1]), PLAIN, None),
    "noise_as_int64": Mutant(
        column(NOISE, "value", lambda values: list(map(int, values)), pa.int64()), REFUSED,
        f"{NOISE}.parquet: value: found a column of int64",
    ),
    "no_noise": Mutant(
        dropped(f"{NOISE}.parquet"), REFUSED,
        'config.json: training.scenario_source.openings.source: found "file"',
    ),
    "factor_of_unknown_bus": Mutant(
        factors(bus=9), REFUSED, f"{FACTORS}.json: load_factors[0].bus_id: found 9"
    ),
    "factor_of_unknown_block": Mutant(
        factors(block=3), REFUSED,
        f"{FACTORS}.json: load_factors[0].block_factors[0].block_id: found 3",
    ),
    "factor_twice": Mutant(
        factors(times=2), REFUSED,
        f"{FACTORS}.json: load_factors[1].bus_id, load_factors[1].stage_id: found 0 and 0",
    ),
    "factor_of_nothing": Mutant(
        factors(factor=0.0), REFUSED,
        f"{FACTORS}.json: load_factors[0].block_factors[0].factor: found 0.0",
    ),
    "factor": Mutant(factors(), 128654.38501343998, None),
    # Bounds by stage.
    "bound_of_unknown_hydro": Mutant(
        bounds(HYDRO_BOUNDS, "hydro", hydro_id=[9], max_turbined_m3s=[5.0]), REFUSED,
        f"{HYDRO_BOUNDS}.parquet: hydro_id[0]: found 9, expected the number of a hydro",
    ),
    "bound_in_unknown_stage": Mutant(
        bounds(HYDRO_BOUNDS, "hydro", stage_id=[9], max_turbined_m3s=[5.0]), REFUSED,
        f"{HYDRO_BOUNDS}.parquet: stage_id[0]: found 9, expected the number of a stage",
    ),
    "bound_twice": Mutant(
        bounds(HYDRO_BOUNDS, "hydro", stage_id=[1, 1], max_turbined_m3s=[5.0, 6.0]), REFUSED,
        f"{HYDRO_BOUNDS}.parquet: hydro_id[1], stage_id[1]: found 0 and 1",
    ),
    "bound_above_the_declared": Mutant(
        bounds(HYDRO_BOUNDS, "hydro", max_turbined_m3s=[100.0]), REFUSED,
        f"{HYDRO_BOUNDS}.parquet: max_turbined_m3s of hydro_id 0, stage_id 1: found 100",
    ),
    "bound_in_null_stage": Mutant(
        bounds(HYDRO_BOUNDS, "hydro", stage_id=[None], max_turbined_m3s=[5.0]), 59653.83872929268,
        f"{HYDRO_BOUNDS}.parquet: stage_id[0]: found null",
    ),
    "null_bound": Mutant(bounds(HYDRO_BOUNDS, "hydro", max_turbined_m3s=[None]), PLAIN, None),
    "bounds_of_turbine": Mutant(
        bounds(HYDRO_BOUNDS, "hydro", stage_id=ALL, max_turbined_m3s=[5.0] * 5),
        97286.08793552923, None,
    ),
    "least_flow_of_hydro_by_stage": Mutant(
        several(PRICED, bounds(HYDRO_BOUNDS, "hydro", stage_id=ALL, min_turbined_m3s=[60.0] * 5)),
        PLAIN, None,
    ),
    "least_flow_of_group_by_stage": Mutant(
        several(PRICED, group_bounds(ALL, min_turbined_m3s=60.0)), 4574391.36217368, None
    ),
    "bound_of_unknown_group": Mutant(
        new(
            GROUP_BOUNDS, hydro_id=[0], hydro_unit_group_id=[3], stage_id=[1],
            min_turbined_m3s=[5.0],
        ), REFUSED,
        f"{GROUP_BOUNDS}.parquet: hydro_unit_group_id of hydro_id 0, stage_id 1: found 3",
    ),
    "bound_of_group_twice": Mutant(
        group_bounds([1, 1], min_turbined_m3s=5.0), REFUSED,
        f"{GROUP_BOUNDS}.parquet: hydro_id[1], stage_id[1], hydro_unit_group_id[1]: found 0 and 1",
    ),
    "most_storage_below_least": Mutant(
        bounds(HYDRO_BOUNDS, "hydro", min_storage_hm3=[500.0]), REFUSED,
        f"{HYDRO_BOUNDS}.parquet: min_storage_hm3 of hydro_id 0, stage_id 1: found 500",
    ),
    "most_power_below_least": Mutant(
        bounds(THERMAL_BOUNDS, "thermal", min_generation_mw=[50.0], max_generation_mw=[5.0]),
        REFUSED,
        f"{THERMAL_BOUNDS}.parquet: min_generation_mw of thermal_id 0, stage_id 1: found 50, "
        "expected at most max_generation_mw, 5",
    ),
    "negative_cost_by_stage": Mutant(
        bounds(THERMAL_BOUNDS, "thermal", cost_per_mwh=[-5.0]), REFUSED,
        f"{THERMAL_BOUNDS}.parquet: cost_per_mwh[0]: found -5.0",
    ),
    "bound_of_unknown_thermal": Mutant(
        bounds(THERMAL_BOUNDS, "thermal", thermal_id=[9], cost_per_mwh=[5.0]), REFUSED,
        f"{THERMAL_BOUNDS}.parquet: thermal_id[0]: found 9",
    ),
    "more_power_by_stage": Mutant(
        bounds(THERMAL_BOUNDS, "thermal", max_generation_mw=[200.0]), 51405.56556702827, None
    ),
    "price_of_unknown_bus": Mutant(
        bounds("constraints/penalty_overrides_bus", "bus", bus_id=[5], excess_cost=[36.0]),
        REFUSED, "penalty_overrides_bus.parquet: bus_id[0]: found 5",
    ),
    # Hydros, thermal plants, buses, lines.
    "negative_least_flow": Mutant(
        part(*GENERATION, min_turbined_m3s=-5.0), REFUSED,
        "system/hydros.json: hydros[0].generation.min_turbined_m3s: found -5.0",
    ),
    "most_outflow_below_least": Mutant(
        part(*HYDRO, "outflow", min_outflow_m3s=50.0, max_outflow_m3s=5.0), REFUSED,
        "system/hydros.json: hydros[0].outflow.min_outflow_m3s: found 50.0, expected at most",
    ),
    "most_volume_below_least": Mutant(
        part(*HYDRO, "reservoir", min_storage_hm3=500.0), REFUSED,
        "system/hydros.json: hydros[0].reservoir.min_storage_hm3: found 500.0",
    ),
    "group_below_its_hydro": Mutant(
        part(*GENERATION, min_turbined_m3s=5.0), REFUSED,
        "system/hydros.json: hydros[0].unit_groups[0].min_turbined_m3s: found 0.0",
    ),
    "group_of_unknown_bus": Mutant(
        part(*GROUP, bus_id=9), REFUSED, "hydros[0].unit_groups[0].bus_id: found 9"
    ),
    "no_groups": Mutant(
        part(*HYDRO, unit_groups=[]), REFUSED, "hydros[0].unit_groups: found a list of 0"
    ),
    "water_in_a_circle": Mutant(
        part("system/hydros", "hydros", 3, downstream_id=0), REFUSED,
        "system/hydros.json: hydros[0].downstream_id: found 2, expected a way to the sea",
    ),
    "hydro_twice": Mutant(
        part("system/hydros", "hydros", 1, id=0), REFUSED,
        "system/hydros.json: hydros[1].id: found 0, expected what no other entry has",
    ),
    "old_field": Mutant(
        part(*GENERATION, productivity_mw_per_m3s=1.0), REFUSED,
        "the field hydros.generation.productivity_mw_per_m3s of system/hydros.json",
    ),
    "no_start": Mutant(
        out(*HYDRO, "operational_start_date"), REFUSED,
        "system/hydros.json: hydros[0].operational_start_date: found nothing",
    ),
    "productivity_twice": Mutant(
        again(MODELS, "production_models", 0), REFUSED,
        f"{MODELS}.json: production_models[4].hydro_id: found 0, expected what no other entry has",
    ),
    "productivity_of_unknown_hydro": Mutant(
        again(MODELS, "production_models", 0, hydro_id=9), REFUSED,
        f"{MODELS}.json: production_models[4].hydro_id: found 9",
    ),
    "productivity_in_some_stages": Mutant(
        part(*SPAN, end_stage_id=2), REFUSED,
        f"{MODELS}.json: hydro_id 0, stage_id 3: found no productivity_mw_per_m3s",
    ),
    "most_power_of_thermal_below_least": Mutant(
        part(*THERMAL, "generation", min_mw=500.0), REFUSED,
        "system/thermals.json: thermals[1].generation.min_mw: found 500.0, expected at most",
    ),
    "thermal_of_no_bus": Mutant(
        part(*THERMAL, bus_id=None), REFUSED, "system/thermals.json: thermals[1].bus_id: found null"
    ),
    "unknown_null_field": Mutant(
        part(*THERMAL, colour=None), REFUSED, "the field thermals.colour of system/thermals.json"
    ),
    "negative_number": Mutant(part(*THERMAL, id=-1), PLAIN, None),
    "deficit_with_an_end": Mutant(
        part("penalties", "bus", deficit_segments=[{"depth_mw": 5.0, "cost": 3.0}]), REFUSED,
        "penalties.json: bus.deficit_segments[0].depth_mw: found 5.0, expected null",
    ),
    "deficit_that_falls": Mutant(
        again(*STEPS, 0, cost=3.0), REFUSED,
        "system/buses.json: buses[0].deficit_segments[1].cost: found 3.0, expected more than",
    ),
    "bus_without_demand": Mutant(
        again("system/buses", "buses", 0, id=1), REFUSED,
        f"{LOAD}.parquet: bus_id 1, stage_id 0: found no row",
    ),
    "line_to_itself": Mutant(
        part("system/lines", lines=[LINE]), REFUSED,
        "system/lines.json: lines[0].target_bus_id: found 0, expected another bus",
    ),
    "no_price": Mutant(
        out("penalties", "hydro", "diversion_cost"), REFUSED,
        "penalties.json: hydro.diversion_cost: found nothing",
    ),
    "price_of_zero": Mutant(
        part("penalties", "bus", excess_cost=0.0), REFUSED,
        "penalties.json: bus.excess_cost: found 0.0, expected more than 0",
    ),
    "field_twice": Mutant(
        text("penalties.json", '"excess_cost"', '"excess_cost": 1.0, "excess_cost"'), REFUSED,
        "penalties.json: the file: found no valid JSON (excess_cost is given twice",
    ),
    "name_that_is_no_text": Mutant(
        part(*THERMAL, name="\ud800"), REFUSED, "system/thermals.json: thermals[1].name: found"
    ),
    # Volumes and stages.
    "volume_twice": Mutant(
        again(*VOLUME), REFUSED,
        "initial_conditions.json: storage[4].hydro_id: found 0, expected what no other entry has",
    ),
    "volume_of_unknown_hydro": Mutant(
        again(*VOLUME, hydro_id=99), PLAIN,
        "initial_conditions.json: storage[4].hydro_id: found 99, expected the number of a hydro",
    ),
    "volume_above_the_most": Mutant(
        part(*VOLUME, value_hm3=5000.0), 25351.918906293075,
        "initial_conditions.json: storage[0].value_hm3: found 5000.0, expected at most 203.201",
    ),
    "no_volume": Mutant(
        out(*VOLUME), 83153.69373718137, "expected a hydro with a volume in initial_conditions.json"
    ),
    "stage_twice": Mutant(
        part(*STAGE, id=0), REFUSED,
        "stages.json: stages[1].id: found 0, expected what no other entry has",
    ),
    "end_before_start": Mutant(
        part("stages", "stages", 0, end_date="1999-01-01"), REFUSED,
        'stages.json: stages[0].end_date: found "1999-01-01", expected after start_date',
    ),
    "stage_of_no_days": Mutant(
        part(*STAGE, start_date="2000-03-01"), REFUSED,
        'stages.json: stages[1].end_date: found "2000-03-01", expected after start_date',
    ),
    "date_in_another_form": Mutant(
        part(*STAGE, start_date="20000201"), REFUSED, 'stages[1].start_date: found "20000201"'
    ),
    "stages_in_another_order": Mutant(
        lambda folder: edit(folder, "stages", lambda c: c["stages"].reverse()), PLAIN, None
    ),
    "block_of_no_hours": Mutant(
        part(*STAGE, "blocks", 0, hours=0.0), REFUSED, "stages[1].blocks[0].hours: found 0.0"
    ),
    "transition_of_unknown_stage": Mutant(
        part(
            "stages", "policy_graph",
            transitions=[{"source_id": 9, "target_id": 1, "probability": 1.0}],
        ), REFUSED, "stages.json: policy_graph.transitions[0].source_id: found 9",
    ),
    "transition_of_half": Mutant(transitions(probability=0.5), REFUSED, "a policy graph with"),
    "no_selection": Mutant(
        out("config", "training", "selection"), REFUSED,
        "config.json: training.selection: found nothing, expected this field: it is required",
    ),
}  # fmt: skip
