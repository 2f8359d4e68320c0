"""Changes of a folder of Cobre's, and mutants: a mutant is one change, and what results from it."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from tests.examples.cobre_variants import edit, put, rows

REFUSED = None
PLAIN = 59591.406217394
"""The bound of the folder without any change."""
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
    """A change of a folder; Cobre's bound after the change, or `REFUSED`; and what our error says.

    If `ours` is None, we do not refuse the mutant, and our bound is Cobre's.
    """

    change: Callable
    cobre: float | None
    ours: str | None


def part(file, *path, **fields):
    """Return a change of the fields of the object at a path in a JSON file."""
    return lambda folder: put(folder, file, *path, **fields)


def out(file, *path):
    """Return a change that removes what a path in a JSON file leads to."""

    def change(content):
        for step in path[:-1]:
            content = content[step]
        content.pop(path[-1])

    return lambda folder: edit(folder, file, change)


def again(file, *path, **fields):
    """Return a change that appends a copy of a list's entry, with some other fields."""

    def change(content):
        for step in path[:-1]:
            content = content[step]
        content.append(content[path[-1]] | fields)

    return lambda folder: edit(folder, file, change)


def column(file, name, change, kind=None):
    """Return a change of the values of a table's column, and perhaps of the column's type."""

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
    """Return a change of the rows of a table, each of which is a dict."""

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
    """Return a change that writes bounds of one entity in some stages, by default in stage 1."""
    stages = columns.pop("stage_id", [1])
    entities = columns.pop(f"{entity}_id", [0] * len(stages))
    return new(file, **{f"{entity}_id": entities}, stage_id=stages, **columns)


def group_bounds(stages, **columns):
    """Return a change that bounds the unit group of the first hydro in some stages."""
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
    """Return a change that writes the chain of stages as a list of transitions."""
    chain = [{"source_id": t, "target_id": t + 1, "probability": 1.0} | fields for t in range(4)]
    return part("stages", "policy_graph", transitions=chain)


def factors(bus=0, stage=0, block=0, factor=1.5, times=1):
    """Return a change that writes a factor of demand."""
    blocks = [{"block_id": block, "factor": factor}]
    entry = {"bus_id": bus, "stage_id": stage, "block_factors": blocks}
    return part(FACTORS, load_factors=[entry] * times)


def several(*changes):
    """Return one change that makes all these changes."""
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
