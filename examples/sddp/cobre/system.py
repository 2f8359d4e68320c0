"""Buses, lines and thermal plants of a case of Cobre's, in energy per stage.

Power that lasts the hours of a block is energy; prices per MWh stay the same.
"""

from itertools import pairwise
from typing import Any

from case.fields import Field

from cobre.folder import at, items, number
from cobre.schema import (
    AMOUNT,
    BUS,
    COUNT,
    LIFE,
    LINE,
    PRICE,
    STAGE,
    START,
    TEXT,
    Integer,
    List,
    Object,
    ordered,
)
from cobre.study import Rows, Study, by_number, shorten


def _check_steps(field: Field) -> None:
    """Raise `CaseError` unless a deficit's steps rise in cost, and the last is unlimited."""
    steps = field.items()
    for before, step in pairwise(steps):
        if step.value["cost"] <= before.value["cost"]:
            raise step.get("cost").error(f"more than in the step before, {before.value['cost']:g}")
    if at(steps[-1], "depth_mw") is not None:
        raise steps[-1].get("depth_mw").error("null, as it is the last step")


def _check_ends(field: Field) -> None:
    """Raise `CaseError` if a line joins a bus to itself."""
    if field.value["source_bus_id"] == field.value["target_bus_id"]:
        raise field.get("target_bus_id").error("another bus than source_bus_id")


STEPS = List(Object({"cost": PRICE}, optional={"depth_mw": AMOUNT}), least=1, rule=_check_steps)
BUS_ENTRY = Object(
    {"id": Integer(), "name": TEXT}, optional={"deficit_segments": STEPS, **LIFE}, new=START
)
BUSES = Object({"buses": List(BUS_ENTRY, key=("id",), least=1, defines="bus")})
AHEAD = "thermal plants that are dispatched ahead"
POWER = Object({"min_mw": AMOUNT, "max_mw": AMOUNT}, rule=ordered(("min_mw", "max_mw")))
THERMAL = Object(
    {"id": Integer(), "name": TEXT, "bus_id": BUS, "cost_per_mwh": AMOUNT, "generation": POWER},
    optional=LIFE,
    new=START,
    features={"gnl_config": AHEAD, "anticipated_config": AHEAD},
)
THERMALS = Object({"thermals": List(THERMAL, key=("id",), defines="thermal")})
LINE_ENTRY = Object(
    {
        "id": Integer(),
        "name": TEXT,
        "source_bus_id": BUS,
        "target_bus_id": BUS,
        "capacity": Object({"direct_mw": AMOUNT, "reverse_mw": AMOUNT}),
    },
    optional={"exchange_cost": AMOUNT, "losses_percent": AMOUNT, **LIFE},
    new=START,
    rule=_check_ends,
)
LINES = Object({"lines": List(LINE_ENTRY, key=("id",), defines="line")})
FACTORS = Object(
    {
        "line_id": LINE,
        "stage_id": STAGE,
        "block_factors": List(
            Object({"block_id": COUNT, "direct_factor": PRICE, "reverse_factor": PRICE}),
            key=("block_id",),
        ),
    }
)
EXCHANGE = Object({"exchange_factors": List(FACTORS, key=("line_id", "stage_id"))})


def read_buses(study: Study, root: Field, penalties: Field) -> list[dict[str, Any]]:
    """Return the buses, one for each bus and block."""
    file = "constraints/penalty_overrides_bus.parquet"
    rows = Rows(study.folder, file, BUS, {"excess_cost": PRICE})
    buses = []
    for field in by_number(root, "buses"):
        study.check_life(field)
        name, key = field.get("name").text(), field.value["id"]
        steps = items(
            field if at(field, "deficit_segments") else penalties.get("bus"), "deficit_segments"
        )
        price = penalties.get("bus").get("excess_cost").number()
        excess = study.constant(
            rows.values(study.stages, key, "excess_cost", price), "prices of an excess"
        )
        buses += [
            {
                "name": study.named(name, block),
                "deficit": [_step(study, step, block) for step in steps],
                "excess_cost": excess,
            }
            for block in study.blocks
        ]
    return buses


def _step(study: Study, field: Field, block: int) -> dict[str, Any]:
    """Return a step of the deficit of a bus in a block."""
    step: dict[str, Any] = {"cost": field.get("cost").number()}
    if at(field, "depth_mw") is not None:
        step["depth"] = study.energy(field.get("depth_mw").number(), block)
    return step


def read_thermals(study: Study) -> list[dict[str, Any]]:
    """Return the thermal plants, one for each plant and block."""
    folder, stages = study.folder, study.stages
    names = "min_generation_mw", "max_generation_mw", "cost_per_mwh"
    root = folder.json("system/thermals.json", THERMALS)
    columns = dict.fromkeys(names, AMOUNT)
    rows = Rows(folder, "constraints/thermal_bounds.parquet", Integer(of="thermal"), columns)
    thermals = []
    for field in by_number(root, "thermals"):
        study.check_life(field)
        power, key = field.get("generation"), field.value["id"]
        base = (power.get(n).number() for n in ("min_mw", "max_mw"))
        price = field.get("cost_per_mwh").number()
        least, most, cost = (
            rows.values(stages, key, *item) for item in zip(names, (*base, price), strict=True)
        )
        rows.ordered(stages, key, (names[0], least), (names[1], most))
        thermals += [
            {
                "name": study.named(field.get("name").text(), block),
                "bus": study.bus(field, "bus_id", block),
                "least": study.energy(least, block),
                "capacity": study.energy(most, block),
                "cost": shorten(cost),
            }
            for block in study.blocks
        ]
    return thermals


def read_lines(study: Study, penalties: Field) -> list[dict[str, Any]]:
    """Return the lines, one for each line and block."""
    folder, stages = study.folder, study.stages
    root = folder.json("system/lines.json", LINES)
    names = "direct_mw", "reverse_mw"
    bounds = Rows(folder, "constraints/line_bounds.parquet", LINE, dict.fromkeys(names, AMOUNT))
    file = "constraints/penalty_overrides_line.parquet"
    prices = Rows(folder, file, LINE, {"exchange_cost": PRICE})
    factors = _read_factors(study)
    lines = []
    for field in by_number(root, "lines"):
        study.check_life(field)
        folder.lack_if({"lines with losses": number(field, "losses_percent", 0.0) != 0.0})
        power, key = field.get("capacity"), field.value["id"]
        base = [power.get(n).number() for n in names]
        ways = [bounds.values(stages, key, n, b) for n, b in zip(names, base, strict=True)]
        usual = penalties.get("line").get("exchange_cost").number()
        price = prices.values(stages, key, "exchange_cost", number(field, "exchange_cost", usual))
        cost = study.constant(price, "costs of exchange")
        for block in study.blocks:
            there, back = (
                study.energy(
                    [
                        way * factors.get((key, t, block), (1.0, 1.0))[side]
                        for t, way in zip(stages.ids, ways[side], strict=True)
                    ],
                    block,
                )
                for side in (0, 1)
            )
            lines.append(
                {
                    "name": study.named(field.get("name").text(), block),
                    "source": study.bus(field, "source_bus_id", block),
                    "target": study.bus(field, "target_bus_id", block),
                    "capacity": there,
                    "reverse": back,
                    "cost": cost,
                }
            )
    return lines


def _read_factors(study: Study) -> dict[tuple[int, int, int], tuple[float, float]]:
    """Return the factors of a line's capacities, by line, stage and block."""
    file = "constraints/exchange_factors.json"
    if not study.folder.has(file):
        return {}
    names = "direct_factor", "reverse_factor"
    factors = {}
    for field in study.folder.json(file, EXCHANGE).get("exchange_factors").items():
        line, stage = field.value["line_id"], field.value["stage_id"]
        for part in field.get("block_factors").items():
            block = study.block(part, stage)
            there, back = (part.get(name).number() for name in names)
            factors[line, stage, block] = there, back
    return factors
