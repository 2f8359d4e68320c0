"""Write a case and its openings as a folder of Cobre's, in the form that 0.18 reads.

Both programs then solve the same stage problems.
"""

import errno
import json
import os
from collections.abc import Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from case.data import Case

from cobre.stages import YEAR
from cobre.write_system import HOURS, bounds_by_stage, not_written, penalties, system

LEAST = 1e-9
"""The least factor between two stages' discounts; for a smaller one Cobre's rate is imprecise."""


class NotInCobre(Exception):
    """The case has a feature that this program does not write."""


def check(case: Case) -> None:
    """Raise `NotInCobre`, with a sentence for each feature of the case that cannot be written."""
    missing = {
        "openings that differ in probability": any(np.ptp(p) > 1e-12 for p in case.probabilities),
        "costs that count more in a later stage": any(
            after > before for before, after in pairwise(case.discount)
        ),
        "costs of the first stage that are discounted": case.discount[0] != 1.0,
        "costs that count next to nothing in a later stage": any(
            after < before * LEAST for before, after in pairwise(case.discount)
        ),
        **not_written(case),
    }
    told = [feature for feature, is_there in missing.items() if is_there]
    if told:
        raise NotInCobre(f"{case.name} is not written for Cobre, because it has {', '.join(told)}")


def config(
    case: Case, forward_passes: int, iterations: int, selection: str | None
) -> dict[str, Any]:
    """Return `config.json` with a number of iterations and the name of a cut selection, if any."""
    schemes = {name: {"scheme": "in_sample"} for name in ("inflow", "load", "ncs")}
    training = {
        "selection": {"method": "sampled", "forward_passes": forward_passes},
        "tree_seed": 1,
        "stopping_rules": [{"type": "iteration_limit", "limit": iterations}],
        "scenario_source": {"seed": 1, **schemes, "openings": {"source": "file"}},
    }
    if selection is not None:
        training["cut_selection"] = {"selection": {"method": selection}}
    bought = any(h.water_cost is not None for h in case.hydros)
    return {
        "training": training,
        "simulation": {"enabled": False},
        "modeling": {"inflow_non_negativity": {"method": "penalty" if bought else "none"}},
    }


def stages(case: Case) -> dict[str, Any]:
    """Return `stages.json`: by its dates a stage is a month, but it lasts `HOURS`.

    Between two stages, the rate is chosen so that a month discounts by the factor of the case.
    """
    firsts = [date(2000 + t // 12, t % 12 + 1, 1) for t in range(case.stages + 1)]
    each = [
        {
            "id": t,
            "start_date": firsts[t].isoformat(),
            "end_date": firsts[t + 1].isoformat(),
            "blocks": [{"id": 0, "name": "all", "hours": HOURS}],
            "num_openings": len(case.probabilities[t]),
        }
        for t in range(case.stages)
    ]
    graph: dict[str, Any] = {"type": "finite_horizon", "annual_discount_rate": 0.0}
    if any(factor != 1.0 for factor in case.discount):
        graph["transitions"] = [
            {
                "source_id": t,
                "target_id": t + 1,
                "probability": 1.0,
                "annual_discount_rate_override": (before / after)
                ** (YEAR / (firsts[t + 1] - firsts[t]).days)
                - 1.0,
            }
            for t, (before, after) in enumerate(pairwise(case.discount))
        ]
    return {"policy_graph": graph, "stages": each}


def write_table(path: Path, **columns: Sequence[float | None]) -> None:
    """Write a table, without the compression snappy, which 0.18 does not read."""
    kinds = {"opening_index": pa.uint32(), "entity_index": pa.uint32()}
    arrays = {
        name: pa.array(
            values, pa.int32() if name.endswith("_id") else kinds.get(name, pa.float64())
        )
        for name, values in columns.items()
    }
    pq.write_table(pa.table(arrays), path, compression="zstd")


def write_scenarios(case: Case, folder: Path) -> None:
    """Write the openings as noise, with means and deviations that turn noise into the values."""
    hydros, demand = len(case.hydros), [np.array(rows) for rows in case.demand]
    varying = [b for b in range(len(case.buses)) if any(np.ptp(d[:, b]) for d in demand)]
    pairs = [(h, t) for h in range(hydros) for t in range(case.stages)]
    write_table(
        folder / "inflow_seasonal_stats.parquet",
        hydro_id=[h for h, _ in pairs],
        stage_id=[t for _, t in pairs],
        mean_m3s=[0.0] * len(pairs),
        std_m3s=[1.0] * len(pairs),
    )
    pairs = [(b, t) for b in range(len(case.buses)) for t in range(case.stages)]
    write_table(
        folder / "load_seasonal_stats.parquet",
        bus_id=[b for b, _ in pairs],
        stage_id=[t for _, t in pairs],
        mean_mw=[0.0 if b in varying else demand[t][0, b] for b, t in pairs],
        std_mw=[1.0 if b in varying else 0.0 for b, _ in pairs],
    )
    rows = [
        (t, k, entity, value)
        for t, openings in enumerate(case.inflows)
        for k, inflows in enumerate(openings)
        for entity, value in enumerate([*inflows, *demand[t][k, varying]])
    ]
    write_table(
        folder / "noise_openings.parquet",
        stage_id=[t for t, *_ in rows],
        opening_index=[k for _, k, *_ in rows],
        entity_index=[entity for *_, entity, _ in rows],
        value=[value for *_, value in rows],
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
        The folder is made as a whole or not at all. If it exists, it must be empty: files that
        another case has left would be read with this case.
    forward_passes, iterations : int
        How Cobre trains: it reads these numbers from the folder, and has no options for them.
    selection : str, optional
        Cobre's method of cut selection, such as ``"dynamic"``; without it, every cut is a row.

    Raises
    ------
    NotInCobre
        If the case has a feature that is not written.
    OSError
        If the folder cannot be written, or is not empty.
    """
    check(case)
    folder = folder.resolve()
    if folder.exists() and next(folder.iterdir(), None) is not None:
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as scratch:
        draft = Path(scratch) / folder.name
        _write_files(case, draft, config(case, forward_passes, iterations, selection))
        draft.replace(folder)


def _write_files(case: Case, folder: Path, settings: dict[str, Any]) -> None:
    """Write all files of a case."""
    for part in ("system", "scenarios", "constraints"):
        (folder / part).mkdir(parents=True)
    storage = [{"hydro_id": h, "value_hm3": plant.v0} for h, plant in enumerate(case.hydros)]
    files = {
        "config": settings,
        "stages": stages(case),
        "penalties": penalties(case),
        "initial_conditions": {"storage": storage, "filling_storage": []},
        **{f"system/{name}": content for name, content in system(case).items()},
    }
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")
    for name, table in bounds_by_stage(case).items():
        write_table(folder / "constraints" / f"{name}.parquet", **table)
    write_scenarios(case, folder / "scenarios")
