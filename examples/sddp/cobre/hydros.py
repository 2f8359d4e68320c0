"""Reservoirs of a case of Cobre's, in hm3 per stage.

A flow that lasts the hours of a stage is a volume: in an hour, 1 m3/s brings 0.0036 hm3. So a price
of 1 m3/s for an hour, divided by 0.0036, is the price of 1 hm3, and MW per m3/s become MWh per hm3.
"""

from typing import Any

import numpy as np
from case.fields import CaseError, Field

from cobre.folder import Folder, at, items, number
from cobre.hydro_schema import (
    BOUNDS,
    GROUP_BOUNDS,
    HYDROS,
    INITIAL,
    LEAST,
    NEGATIVE,
    OUTFLOW,
    STAGE_PRICES,
    STORAGE,
    TURBINE,
    WITHDRAWAL,
    WITHDRAWN,
)
from cobre.production import Production
from cobre.schema import HYDRO
from cobre.stages import WATER
from cobre.study import Rows, Study, by_number, shorten

FILE = "system/hydros.json"


class Prices:
    """The prices of hydros: the price of the stage, else of the hydro, else that of all hydros."""

    def __init__(self, study: Study, usual: Field) -> None:
        self.study, self.usual = study, usual
        file = "constraints/penalty_overrides_hydro.parquet"
        self.rows = Rows(study.folder, file, HYDRO, STAGE_PRICES)

    def of(self, field: Field, name: str) -> np.ndarray:
        """Return a price [T] of 1 m3/s for an hour, or of 1 MWh."""
        own = at(field, "penalties")
        withdrawal = name.startswith("water_withdrawal")
        price = None if own is None else at(own, WITHDRAWAL if withdrawal else name)
        if price is None:
            price = at(self.usual, name)
        if price is None and name == NEGATIVE:
            base = 1000.0
        else:
            base = (price or self.usual.get(WITHDRAWAL if withdrawal else name)).number()
        return np.array(self.rows.values(self.study.stages, field.value["id"], name, base))


class Hydros:
    """Reads `system/hydros.json`, and the files that change what this file says."""

    def __init__(self, study: Study, penalties: Field, bought: bool) -> None:
        self.study, self.bought = study, bought
        root = study.folder.json(FILE, HYDROS)
        self.prices = Prices(study, penalties.get("hydro"))
        file = "constraints/hydro_bounds.parquet"
        self.bounds = Rows(study.folder, file, HYDRO, BOUNDS)
        file = "constraints/hydro_unit_group_bounds.parquet"
        self.groups = Rows(study.folder, file, HYDRO, GROUP_BOUNDS, part="hydro_unit_group_id")
        self.production = Production(study)
        self.fields = by_number(root, "hydros")
        self.index = {f.value["id"]: h for h, f in enumerate(self.fields)}
        self.start = _read_start(study.folder)

    def read(self) -> list[dict[str, Any]]:
        """Return the reservoirs."""
        hydros = [self._read(field) for field in self.fields]
        self._check_withdrawals(hydros)
        return hydros

    def withdrawal(self, field: Field) -> np.ndarray:
        """Return the water [T] that is withdrawn from a hydro, in m3/s."""
        return self._bound(field, WITHDRAWN, 0.0)

    def _bound(self, field: Field, name: str, base: float) -> np.ndarray:
        """Return a bound [T] of a hydro."""
        return np.array(self.bounds.values(self.study.stages, field.value["id"], name, base))

    def _read(self, field: Field) -> dict[str, Any]:
        """Return one reservoir."""
        self._check(field)
        study, key = self.study, field.value["id"]
        low, high = (self._bound(field, n, field.get("reservoir").get(n).number()) for n in STORAGE)
        self.bounds.ordered(study.stages, key, (STORAGE[0], low), (STORAGE[1], high))
        capacity = self._capacity(field)
        below = at(field, "downstream_id")
        hydro = {
            "name": field.get("name").text(),
            "vmin": float(study.constant(low, "bounds of storage")),
            "vmax": float(study.constant(high, "bounds of storage")),
            "v0": self.start[key].number(low[0], high[0]),
            "segments": self._segments(field, capacity),
            "spill_cost": self._price(field, "spillage_cost", "costs of spillage"),
            "downstream": -1 if below is None else self.index[below.value],
            "limits": self._limits(field, capacity),
        }
        price = self._water_price(field)
        return hydro if price is None else hydro | {"water_cost": price}

    def _turbine(self, field: Field, name: str) -> np.ndarray:
        """Return a bound [T] of a hydro's turbines, which in 0.18 may be the bound of a unit group.

        With a group, the lower bound is that of the group alone, and the upper bound is the smaller
        of the hydro's bound and the group's bound.
        """
        of_hydro = self._bound(field, name, field.get("generation").get(name).number())
        groups, key = items(field, "unit_groups"), field.value["id"]
        if not groups:
            return of_hydro
        declared = groups[0].get(name).number()
        of_group = np.array(self.groups.values(self.study.stages, key, name, declared))
        return of_group if name in LEAST else np.minimum(of_hydro, of_group)

    def _check(self, field: Field) -> None:
        """Note what this program lacks of the features of one hydro."""
        study, folder = self.study, self.study.folder
        own = at(field, "penalties")
        turbined = number(self.prices.usual, "turbined_cost", 0.0)
        if own is not None:
            turbined = number(own, "turbined_cost", turbined)
        folder.lack_if({"costs of turbined water": turbined != 0.0})
        groups = items(field, "unit_groups")
        folder.lack_if({"hydros with several unit groups": len(groups) > 1})
        for group in groups[:1]:
            self._check_group(field, group)
        if field.value["id"] not in self.start:
            raise field.get("id").error("a hydro with a volume in initial_conditions.json")
        study.check_life(field)

    def _check_group(self, field: Field, group: Field) -> None:
        """Raise `CaseError` if the only unit group of a hydro does not fit the hydro, as 0.18 does.

        No stage may have a larger upper bound than the hydro or the group declares.
        """
        stages, key, generation = self.study.stages, field.value["id"], field.get("generation")
        for name in TURBINE:
            whole, part = generation.get(name).number(), group.get(name).number()
            if name in LEAST:
                if part < whole:
                    raise group.get(name).error(f"at least that of the hydro, {whole:g}")
                continue
            if part > whole:
                raise group.get(name).error(f"at most that of the hydro, {whole:g}")
            for rows, declared in ((self.bounds, whole), (self.groups, part)):
                values = rows.values(stages, key, name, declared)
                usual = f"what is declared in {FILE}", [declared] * len(values)
                rows.ordered(stages, key, (name, values), usual)
        for (hydro, stage), cell in self.groups.cells.items():
            if hydro == key and cell["hydro_unit_group_id"] != group.value["id"]:
                told = f"hydro_unit_group_id of hydro_id {hydro}, stage_id {stage}"
                found = str(cell["hydro_unit_group_id"])
                raise CaseError(self.groups.label, told, found, "a unit group of the hydro")

    def _price(self, field: Field, name: str, what: str) -> float:
        """Return a price of 1 hm3, which must be the same in all stages."""
        return float(self.study.constant(self.prices.of(field, name), what) / WATER)

    def _capacity(self, field: Field) -> np.ndarray:
        """Return the most water [T] that turbines take, in m3/s, considering their power too."""
        water, power = (self._turbine(field, n) for n in ("max_turbined_m3s", "max_generation_mw"))
        rho = self.production.of(field)
        return np.minimum(
            water, np.divide(power, rho, out=np.full_like(water, np.inf), where=rho > 0.0)
        )

    def _segments(self, field: Field, capacity: np.ndarray) -> list[dict[str, Any]]:
        """Return the turbine of each block, with a segment for each productivity of any stage."""
        study, rho = self.study, self.production.of(field)
        place = field if field.has("bus_id") else (items(field, "unit_groups") or [field])[0]
        return [
            {
                "qmax": study.energy(np.where(rho == value, capacity * WATER, 0.0), block),
                "productivity": value / WATER,
                "bus": study.bus(place, "bus_id", block),
            }
            for value in dict.fromkeys(rho.tolist())
            for block in study.blocks
        ]

    def _limits(self, field: Field, capacity: np.ndarray) -> list[dict[str, Any]]:
        """Return the limits of outflow and of turbined water.

        Cobre's limits hold in each block, and ours in a stage. Both are the same if there is one
        block. They are also the same for an upper bound of outflow that turbines cannot exceed,
        because spill then goes to blocks that have room.
        """
        folder, several = self.study.folder, self.study.stages.several_blocks
        outflow = field.get("outflow")
        least, above = (self._bound(field, n, number(outflow, n, np.inf)) for n in OUTFLOW)
        turbined, power = (self._turbine(field, name) for name in LEAST)
        bounds = {"outflow": least, "turbined": turbined}
        some = any((b[several] > 0.0).any() for b in (least, turbined, power))
        folder.lack_if(
            {
                "least flows or powers of hydros in stages of several blocks": some,
                "most outflows below the capacity of turbines in stages of several blocks": bool(
                    (capacity > above)[several].any()
                ),
                "most outflows in some stages only": len(set(np.isinf(above).tolist())) > 1,
            }
        )
        limits = []
        for kind, values in bounds.items():
            if (values > 0.0).any():
                price = self._price(field, f"{kind}_violation_below_cost", "prices of limits")
                limits.append(self._least(kind, values, price))
        if np.isfinite(above).all():
            price = self._price(field, "outflow_violation_above_cost", "prices of limits")
            most = self._volume(above)
            limits.append({"of": "outflow", "most": most, "below_cost": 0.0, "above_cost": price})
        if (power > 0.0).any():
            limits.append(self._least_power(field, power))
        return limits

    def _least_power(self, field: Field, power: np.ndarray) -> dict[str, Any]:
        """Return the limit of turbined water by which a hydro gives at least some power [T]."""
        rho = self.production.usual(field)
        self.study.folder.lack_if(
            {"least powers of hydros without productivity": (rho <= 0.0).any()}
        )
        rho = np.maximum(rho, 1e-9)
        price = self.prices.of(field, "generation_violation_below_cost") * rho / WATER
        return self._least(
            "turbined", power / rho, float(self.study.constant(price, "prices of limits"))
        )

    def _least(self, kind: str, flow: np.ndarray, price: float) -> dict[str, Any]:
        """Return the limit that keeps a kind of flow at `flow` [T] or above."""
        return {"of": kind, "least": self._volume(flow), "below_cost": price, "above_cost": 0.0}

    def _volume(self, flow: np.ndarray) -> float | list[float]:
        """Return the hm3 that a flow brings [T]."""
        return shorten(flow * self.study.stages.water)

    def _water_price(self, field: Field) -> float | None:
        """Return the price of 1 hm3 of missing water, or None if no water can be bought.

        Bought water makes up for a negative inflow, or for water that is not withdrawn. The lower
        of the two prices counts.
        """
        price = np.full(len(self.study.stages.ids), np.inf)
        if self.bought:
            price = np.minimum(price, self.prices.of(field, NEGATIVE))
        withdrawn = self.prices.of(field, "water_withdrawal_violation_neg_cost")
        price = np.where(self.withdrawal(field) > 0.0, np.minimum(price, withdrawn), price)
        value = self.study.constant(price, "prices of missing water") / WATER
        return None if np.isinf(value) else float(value)

    def _check_withdrawals(self, hydros: list[dict[str, Any]]) -> None:
        """Note a lacking feature where withdrawing too much water costs less than its spill."""
        spilt = []
        for field, hydro in zip(self.fields, hydros, strict=True):
            cost = self.prices.of(field, "spillage_cost")
            if any("most" in limit for limit in hydro["limits"]):
                cost = cost + self.prices.of(field, "outflow_violation_above_cost")
            spilt.append(cost)
        for h, field in enumerate(self.fields):
            cost, way = 0.0, h
            for _ in hydros:
                if way >= 0:
                    cost, way = cost + spilt[way], hydros[way]["downstream"]
            price = self.prices.of(field, "water_withdrawal_violation_pos_cost")
            pays = (self.withdrawal(field) > 0.0) & (price < cost)
            self.study.folder.lack_if({"withdrawals of water beyond what is asked": pays.any()})


def _read_start(folder: Folder) -> dict[int, Field]:
    """Return the initial volume of each hydro, by the hydro's number."""
    root = folder.json("initial_conditions.json", INITIAL)
    return {f.value["hydro_id"]: f.get("value_hm3") for f in items(root, "storage")}
