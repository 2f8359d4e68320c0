"""Buses, lines and thermal plants of a case of Cobre's, in energy per stage.

Power that lasts the hours of a block is energy; prices per MWh stay.
"""

from typing import Any

from case.fields import Field

from cobre.folder import Folder, at, items, number
from cobre.study import LIFE, Rows, Study, by_number, shorten


def read_buses(study: Study, root: Field, penalties: Field) -> list[dict[str, Any]]:
    """Return the buses, one for each bus and block."""
    folder = study.folder
    folder.known(root, {"buses"})
    folder.known(penalties.get("bus"), {"deficit_segments", "excess_cost"})
    file = "constraints/penalty_overrides_bus.parquet"
    rows = Rows(folder, file, "bus_id", ("excess_cost",))
    buses = []
    for field in by_number(root, "buses"):
        folder.known(field, {"id", "name", "deficit_segments", *LIFE})
        study.check_life(field)
        name, key = field.get("name").text(), field.value["id"]
        steps = items(
            field if at(field, "deficit_segments") else penalties.get("bus"), "deficit_segments"
        )
        price = penalties.get("bus").get("excess_cost").number(0.0)
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
    study.folder.known(field, {"depth_mw", "cost"})
    step: dict[str, Any] = {"cost": field.get("cost").number(0.0)}
    if at(field, "depth_mw") is not None:
        step["depth"] = study.energy(field.get("depth_mw").number(0.0), block)
    return step


def read_thermals(study: Study) -> list[dict[str, Any]]:
    """Return the thermal plants, one for each plant and block."""
    folder, stages = study.folder, study.stages
    root = folder.json("system/thermals.json")
    folder.known(root, {"thermals"})
    names = "min_generation_mw", "max_generation_mw", "cost_per_mwh"
    rows = Rows(folder, "constraints/thermal_bounds.parquet", "thermal_id", names)
    ahead = dict.fromkeys(
        ("gnl_config", "anticipated_config"), "thermal plants that are dispatched ahead"
    )
    thermals = []
    for field in by_number(root, "thermals"):
        folder.known(field, {"id", "name", "bus_id", "cost_per_mwh", "generation", *LIFE}, ahead)
        study.check_life(field)
        power = field.get("generation")
        folder.known(power, {"min_mw", "max_mw"})
        base = (power.get(n).number(0.0) for n in ("min_mw", "max_mw"))
        price = field.get("cost_per_mwh").number(0.0)
        least, most, cost = (
            rows.values(stages, field.value["id"], *item)
            for item in zip(names, (*base, price), strict=True)
        )
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
    root = folder.json("system/lines.json")
    folder.known(root, {"lines"})
    folder.known(penalties.get("line"), {"exchange_cost"})
    names = "direct_mw", "reverse_mw"
    bounds = Rows(folder, "constraints/line_bounds.parquet", "line_id", names)
    file = "constraints/penalty_overrides_line.parquet"
    prices = Rows(folder, file, "line_id", ("exchange_cost",))
    factors = _read_factors(folder)
    lines = []
    for field in by_number(root, "lines"):
        known = {"id", "name", "source_bus_id", "target_bus_id", "capacity", "exchange_cost"}
        folder.known(field, {*known, "losses_percent", *LIFE})
        study.check_life(field)
        folder.lack_if({"lines with losses": number(field, "losses_percent", 0.0) != 0.0})
        power, key = field.get("capacity"), field.value["id"]
        folder.known(power, names)
        base = [power.get(n).number(0.0) for n in names]
        ways = [bounds.values(stages, key, n, b) for n, b in zip(names, base, strict=True)]
        usual = penalties.get("line").get("exchange_cost").number(0.0)
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


def _read_factors(folder: Folder) -> dict[tuple[int, int, int], tuple[float, float]]:
    """Return factors of the capacities of a line, by line, stage and block."""
    file = "constraints/exchange_factors.json"
    if not folder.has(file):
        return {}
    root = folder.json(file)
    folder.known(root, {"exchange_factors"})
    factors = {}
    for field in root.get("exchange_factors").items():
        folder.known(field, {"line_id", "stage_id", "block_factors"})
        for part in field.get("block_factors").items():
            folder.known(part, {"block_id", "direct_factor", "reverse_factor"})
            where = (
                field.get("line_id").integer(0),
                field.get("stage_id").integer(0),
                part.get("block_id").integer(0),
            )
            factors[where] = (
                part.get("direct_factor").number(0.0),
                part.get("reverse_factor").number(0.0),
            )
    return factors
