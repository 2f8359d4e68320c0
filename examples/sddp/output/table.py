"""Tables of a simulation: a row for each scenario and stage, as CSV or Parquet."""

import csv
import importlib.util
import io
from pathlib import Path

import numpy as np
from files import replacing


def table_problem(program: str, path: Path | None) -> list[str]:
    """Return a list with a sentence if a table cannot be written as `path`, else an empty list."""
    if path is None or path.suffix == ".csv":
        return []
    if path.suffix != ".parquet":
        return [f"{program}: error: --table {path} must end in .csv or .parquet"]
    if importlib.util.find_spec("pyarrow") is None:
        return [f"{program}: error: --table {path} needs pyarrow; install it, or name a .csv file"]
    return []


def write_table(columns: dict[str, np.ndarray], path: Path) -> None:
    """Write (S, T) arrays as columns to `path`; first come scenario and stage, counted from 0."""
    scenario, stage = np.indices(next(iter(columns.values())).shape)
    flat = {
        name: a.ravel() for name, a in {"scenario": scenario, "stage": stage, **columns}.items()
    }
    if path.suffix == ".parquet":
        from pyarrow import parquet, table

        with replacing(path) as file:
            parquet.write_table(table(flat), file)
        return
    with replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(text)
        writer.writerow(flat)
        writer.writerows(zip(*(a.tolist() for a in flat.values()), strict=True))
        text.detach()
