"""The stages of a case of Cobre's: blocks, hours, discounts and numbers of openings."""

from dataclasses import dataclass
from datetime import date

import numpy as np
from case.fields import Field

from cobre.folder import Folder, at, items, number
from cobre.schema import (
    AMOUNT,
    ANYTHING,
    COUNT,
    DATE,
    PRICE,
    STAGE,
    TEXT,
    Integer,
    List,
    Number,
    Object,
    Text,
)

WATER = 0.0036  # hm3 that 1 m3/s brings in an hour
YEAR = 365.25  # days


def _check_blocks(field: Field) -> None:
    """Raise `CaseError` unless the blocks of a stage have the numbers 0, 1, ..."""
    numbers = sorted(f.get("id").integer(0) for f in field.items())
    if numbers != list(range(len(numbers))) or not numbers:
        raise field.error("blocks with the numbers 0, 1, ...")


def _check_span(field: Field) -> None:
    """Raise `CaseError` if a stage ends before it starts."""
    if _date(field, "end_date") <= _date(field, "start_date"):
        raise field.get("end_date").error(f"after start_date, {field.value['start_date']}")


BLOCK = Object({"id": COUNT, "name": TEXT, "hours": PRICE})
STAGE_ENTRY = Object(
    {"id": COUNT, "start_date": DATE, "end_date": DATE, "blocks": List(BLOCK, rule=_check_blocks)},
    optional={
        "season_id": COUNT,
        "block_mode": Text(("parallel", "chronological")),
        "state_variables": Object(optional={"storage": ANYTHING, "inflow_lags": ANYTHING}),
        "risk_measure": ANYTHING,
        "sampling_method": TEXT,
    },
    new={"num_openings": Integer(1)},
    old={"num_scenarios": Integer(1)},
    rule=_check_span,
)
TRANSITION = Object(
    {"source_id": STAGE, "target_id": STAGE, "probability": AMOUNT},
    optional={"annual_discount_rate_override": Number(above=-1.0)},
)
GRAPH = Object(
    {"type": TEXT, "annual_discount_rate": AMOUNT},
    optional={"transitions": List(TRANSITION, key=("source_id", "target_id"))},
)
STAGES = Object(
    {"stages": List(STAGE_ENTRY, key=("id",), least=1, defines="stage"), "policy_graph": GRAPH},
    optional={
        # Seasons, and stages before the first, matter only if inflows depend on past inflows.
        "season_definitions": ANYTHING,
        "pre_study_stages": ANYTHING,
    },
)


@dataclass(frozen=True)
class Stages:
    """T stages of up to K blocks, in the order of their numbers `ids`.

    `hours` [T][K] is zero if a stage does not have the block. `month` is the season and year of a
    stage, or None; `sampling` says how Cobre would draw the openings of a stage.
    """

    ids: list[int]
    begin: date
    hours: np.ndarray
    discount: list[float]
    openings: list[int]
    seasons: list[int | None]
    month: list[tuple[int, int] | None]
    sampling: list[str]

    @property
    def water(self) -> np.ndarray:
        """The hm3 [T] that 1 m3/s brings in each stage."""
        return WATER * self.hours.sum(axis=1)

    @property
    def several_blocks(self) -> np.ndarray:
        """Whether each stage [T] has more than one block."""
        return np.count_nonzero(self.hours, axis=1) > 1


def read_stages(folder: Folder) -> Stages:
    """Return the stages; note as lacking whatever is no chain of stages with parallel blocks."""
    root = folder.json("stages.json", STAGES)
    each = sorted(root.get("stages").items(), key=lambda f: f.get("id").integer(0))
    ids = [f.value["id"] for f in each]
    before = [f.get("id").integer(-(2**31)) for f in items(root, "pre_study_stages")]
    folder.ids["stage of the study or before it"] = ids + before
    for field in each:
        _check_stage(folder, field)
    hours = [_read_hours(f) for f in each]
    width = max(map(len, hours))
    seasons = [None if at(f, "season_id") is None else f.get("season_id").integer(0) for f in each]
    begins, ends = ([_date(f, n) for f in each] for n in ("start_date", "end_date"))
    rates = _read_rates(folder, root.get("policy_graph"), ids)
    return Stages(
        ids=ids,
        begin=begins[0],
        hours=np.array([row + [0.0] * (width - len(row)) for row in hours]),
        discount=_factors(rates, [(e - b).days for b, e in zip(begins, ends, strict=True)]),
        openings=[_read_count(f) for f in each],
        seasons=seasons,
        month=[None if s is None else (s, b.year) for s, b in zip(seasons, begins, strict=True)],
        sampling=["saa" if (m := at(f, "sampling_method")) is None else m.text() for f in each],
    )


def _check_stage(folder: Folder, field: Field) -> None:
    """Note what this program lacks of the features of one stage."""
    mode, risk, state = (at(field, n) for n in ("block_mode", "risk_measure", "state_variables"))
    folder.lack_if(
        {
            "chronological blocks": mode is not None and mode.value != "parallel",
            "CVaR": risk is not None and risk.value != "expectation",
            "stages whose state has no storage": state is not None
            and state.has("storage")
            and state.value["storage"] is not True,
        }
    )


def _read_hours(field: Field) -> list[float]:
    """Return the hours of each block of a stage."""
    blocks = sorted(field.get("blocks").items(), key=lambda f: f.get("id").integer(0))
    return [f.get("hours").number() for f in blocks]


def _read_count(field: Field) -> int:
    """Return the number of openings, which 0.18 and 0.5 give under different names."""
    return field.get("num_openings" if field.has("num_openings") else "num_scenarios").integer(1)


def _date(field: Field, name: str) -> date:
    """Return the date `name` of a stage."""
    return date.fromisoformat(field.get(name).text())


def _read_rates(folder: Folder, graph: Field, ids: list[int]) -> list[float]:
    """Return the annual discount rate from each stage to the next."""
    folder.lack_if({"a cyclic horizon": graph.get("type").value != "finite_horizon"})
    rates = [graph.get("annual_discount_rate").number()] * len(ids)
    next_of = dict(zip(ids, [*ids[1:], None], strict=True))
    for field in items(graph, "transitions"):
        source, target = (field.get(name).value for name in ("source_id", "target_id"))
        chain = next_of[source] == target and field.get("probability").number() == 1.0
        folder.lack_if({"a policy graph with branches": not chain})
        t = ids.index(source)
        rates[t] = number(field, "annual_discount_rate_override", rates[t])
    return rates


def _factors(rates: list[float], days: list[int]) -> list[float]:
    """Return the factor by which the costs of each stage count; it is one in the first stage.

    The costs of stage t + 1 count (1 + rate) ** (-days / year) times as much as those of stage t,
    where rate and days are those of stage t.
    """
    factors = [1.0]
    for rate, length in zip(rates[:-1], days[:-1], strict=True):
        factors.append(factors[-1] / (1.0 + rate) ** (length / YEAR))
    return factors
