"""The openings of a case of Cobre's: inflows and demand of every stage.

In Cobre, an opening's noise has an entry for every hydro, and then an entry for every bus on which
demand varies. A value is its mean plus its standard deviation times this noise.
"""

from typing import Any

import numpy as np
from case.fields import CaseError

from cobre.config import OPENINGS, Config
from cobre.folder import Folder
from cobre.hydros import Hydros
from cobre.schema import (
    AMOUNT,
    BUS,
    COUNT,
    HYDRO,
    PAST_STAGE,
    PRICE,
    STAGE,
    Integer,
    Kind,
    List,
    Number,
    Object,
)
from cobre.study import Rows, Study

INDEX = Integer(0, 2**32 - 1, column="uint32")
NOISE = List(
    Object({"stage_id": COUNT, "opening_index": INDEX, "entity_index": INDEX, "value": Number()}),
    key=("stage_id", "opening_index", "entity_index"),
)
BLOCKS = List(Object({"block_id": COUNT, "factor": PRICE}), key=("block_id",))
FACTOR = Object({"bus_id": BUS, "stage_id": STAGE, "block_factors": BLOCKS})
FACTORS = Object({"load_factors": List(FACTOR, key=("bus_id", "stage_id"))})
MOST_DRAWN = 10_000_000
"""The most numbers that are drawn for a case: sending so many to all ranks takes a minute."""
DRAWN = "Openings of {name} are drawn here: Cobre would draw others from the same distribution."


class Scenario:
    """Means and deviations by stage, the noise, and the values that follow from these."""

    def __init__(self, study: Study, hydros: Hydros, config: Config) -> None:
        self.study, self.config = study, config
        folder, stages = study.folder, study.stages
        file = "scenarios/inflow_seasonal_stats.parquet"
        columns: dict[str, Kind] = {"mean_m3s": Number(), "std_m3s": AMOUNT}
        flow = Rows(folder, file, HYDRO, columns, PAST_STAGE, complete=True)
        keys = [f.value["id"] for f in hydros.fields]
        self.mean, self.deviation = _tables(flow, stages, keys, ("mean_m3s", "std_m3s"))
        withdrawn = np.array([hydros.withdrawal(f) for f in hydros.fields])
        self.withdrawn = withdrawn.reshape(len(keys), len(stages.ids)).T
        file = "scenarios/load_seasonal_stats.parquet"
        columns = {"mean_mw": AMOUNT, "std_mw": AMOUNT}
        load = Rows(folder, file, BUS, columns, PAST_STAGE, complete=True)
        buses = list(study.buses)
        self.load, self.spread = _tables(load, stages, buses, ("mean_mw", "std_mw"))
        self.varying = np.flatnonzero((self.spread > 0.0).any(axis=0))
        self.factors = _read_factors(study)
        self.drawn = False

    def read(self) -> dict[str, Any]:
        """Return demand, inflows and probabilities in our format."""
        noise = self._noise()
        stages = range(len(noise))
        outcomes = [[self._demand(t, row) for row in noise[t]] for t in stages]
        scenario = {
            "demand": [np.mean(rows, axis=0).tolist() for rows in outcomes],
            "inflows": [[self._inflows(t, row) for row in noise[t]] for t in stages],
            "probabilities": [[1.0 / len(rows)] * len(rows) for rows in noise],
        }
        if self.varying.size:
            scenario["demand_outcomes"] = [[row.tolist() for row in rows] for rows in outcomes]
        return scenario

    def _inflows(self, t: int, noise: np.ndarray) -> list[float]:
        """Return the inflows of an opening in hm3, minus the water that is withdrawn."""
        flow = self.mean[t] + self.deviation[t] * noise[: self.mean.shape[1]]
        if self.config.truncated:
            # Cobre cuts an inflow off by changing its noise. So it cuts nothing off where the
            # deviation is zero.
            flow = np.where(self.deviation[t] > 0.0, np.maximum(flow, 0.0), flow)
        water = self.study.stages.water[t] * (flow - self.withdrawn[t])
        return list(map(float, water))

    def _demand(self, t: int, noise: np.ndarray) -> np.ndarray:
        """Return the demand of an opening by bus and block."""
        power = self.load[t].copy()
        power[self.varying] += self.spread[t, self.varying] * noise[self.mean.shape[1] :]
        power[self.varying] = np.maximum(power[self.varying], 0.0)
        energy: np.ndarray = power[:, None] * self.factors[t] * self.study.stages.hours[t]
        return energy.ravel()

    def _noise(self) -> list[np.ndarray]:
        """Return the noise [K_t][entities] of each stage: a single opening if nothing varies."""
        stages, width = self.study.stages, self.mean.shape[1] + self.varying.size
        if not self.varying.size and not self.deviation.any():
            return [np.zeros((1, width)) for _ in stages.ids]
        if self.config.given:
            return _read_noise(self.study, width)
        self._check_drawn()
        count = sum(stages.openings)
        if count * width > MOST_DRAWN:
            raise CaseError(
                f"{self.study.folder.name}/stages.json", "the openings of all stages", str(count),
                f"at most {MOST_DRAWN // width} to draw for {width} hydros and varying buses",
            )  # fmt: skip
        self.drawn = True
        rng = np.random.default_rng(self.config.seed)
        return [rng.standard_normal((count, width)) for count in stages.openings]

    def _check_drawn(self) -> None:
        """Note as lacking all distributions but those of independent normal noise."""
        stages, folder = self.study.stages, self.study.folder
        told = [month for month in stages.month if month is not None]
        folder.lack_if(
            {
                "correlated inflows": folder.has("scenarios/correlation.json"),
                "noise that stages share": len(set(told)) < len(told),
                **{f"the sampling method {m}": True for m in stages.sampling if m != "saa"},
            }
        )


def _tables(rows: Rows, stages: Any, keys: list[int], names: tuple[str, str]) -> list[np.ndarray]:
    """Return the values of each name, by stage and entity; zero if there is no row, as in Cobre."""
    return [
        np.array([rows.values(stages, key, name, 0.0) for key in keys], float)
        .reshape(len(keys), len(stages.ids))
        .T
        for name in names
    ]


def _read_factors(study: Study) -> np.ndarray:
    """Return the factors of demand by stage, bus and block."""
    folder, stages = study.folder, study.stages
    factors = np.ones((len(stages.ids), len(study.buses), len(study.blocks)))
    file = "scenarios/load_factors.json"
    if not folder.has(file):
        return factors
    for field in folder.json(file, FACTORS).get("load_factors").items():
        stage, bus = field.value["stage_id"], study.buses[field.value["bus_id"]]
        for part in field.get("block_factors").items():
            block = study.block(part, stage)
            factors[stages.ids.index(stage), bus, block] = part.get("factor").number()
    return factors


def _read_noise(study: Study, width: int) -> list[np.ndarray]:
    """Return the noise in the file of openings; 0.5 counts stages, 0.18 gives their numbers."""
    folder, stages = study.folder, study.stages
    rows = folder.rows(OPENINGS, NOISE)
    ids = stages.ids if folder.is_new else sorted({row["stage_id"] for row in rows})
    found = {tuple(row[n] for n in NOISE.key): row["value"] for row in rows}
    counts = [1 + max((k for t, k, _ in found if t == stage), default=0) for stage in ids]
    if len(ids) != len(stages.ids):
        raise _wrong(
            folder, "stage_id", f"{len(ids)} stages", f"{len(stages.ids)}, as has the study"
        )
    for stage, count, declared in zip(ids, counts, stages.openings, strict=True):
        if count != declared:
            told = f"{declared}, as in stages.json"
            raise _wrong(folder, f"opening_index, stage_id {stage}", f"{count} openings", told)
    keys = (
        (stage, k, entity)
        for stage, count in zip(ids, counts, strict=True)
        for k in range(count)
        for entity in range(width)
    )
    # the loop ends at the first key that is missing, however many keys there should be
    for key in keys:
        if key not in found:
            told = f"a row for every opening and each of {width} hydros and varying buses"
            raise _wrong(folder, _named(key), "no row", told)
    if len(found) > sum(counts) * width:
        extra = next(key for key in found if key[0] not in ids or key[2] >= width)
        told = f"rows of stages of the study, and of {width} hydros and varying buses"
        raise _wrong(folder, _named(extra), "a row", told)
    return [
        np.array([[found[stage, k, e] for e in range(width)] for k in range(count)])
        for stage, count in zip(ids, counts, strict=True)
    ]


def _named(key: tuple[int, ...]) -> str:
    """Return the key of a row of the file of openings, with the names of its columns."""
    return ", ".join(f"{name} {value}" for name, value in zip(NOISE.key, key, strict=True))


def _wrong(folder: Folder, path: str, found: str, expected: str) -> CaseError:
    """Return the error for a file of openings that does not fit the case."""
    return CaseError(f"{folder.name}/{OPENINGS}", path, found, expected)
