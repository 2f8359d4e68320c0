"""Tables of a simulation: a row for each scenario and stage, as CSV or Parquet."""

import csv
import importlib.util
from pathlib import Path

import numpy as np


def table_problem(program: str, path: Path | None) -> list[str]:
    """Return a sentence if a table cannot be written as `path`, else an empty list."""
    if path is None or path.suffix == ".csv":
        return []
    if path.suffix != ".parquet":
        return [f"{program}: error: --table {path} must end in .csv or .parquet"]
    if importlib.util.find_spec("pyarrow") is None:
        return [f"{program}: error: --table {path} needs pyarrow; install it, or name a .csv file"]
    return []


def write_table(columns: dict[str, np.ndarray], path: Path) -> None:
    """Write (S, T) arrays as columns to `path`, after columns with scenario and stage, from 0."""
    scenario, stage = np.indices(next(iter(columns.values())).shape)
    flat = {
        name: a.ravel() for name, a in {"scenario": scenario, "stage": stage, **columns}.items()
    }
    if path.suffix == ".parquet":
        from pyarrow import parquet, table

        parquet.write_table(table(flat), path)
        return
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(flat)
        writer.writerows(zip(*(a.tolist() for a in flat.values()), strict=True))
