"""Reservoirs of a case of Cobre's, in hm3 per stage.

A flow that lasts the hours of a stage is a volume: 1 m3/s brings 0.0036 hm3 in an hour. So a price
of 1 m3/s in an hour, divided by 0.0036, is one of 1 hm3, and MW per m3/s become MWh per hm3.
"""

from typing import Any

import numpy as np
from case.fields import Field

from cobre.folder import Folder, at, items, number
from cobre.production import Production
from cobre.stages import WATER
from cobre.study import LIFE, Rows, Study, by_number, shorten

TURBINE = "min_turbined_m3s", "max_turbined_m3s", "min_generation_mw", "max_generation_mw"
BOUNDS = (
    *TURBINE, "min_storage_hm3", "max_storage_hm3", "min_outflow_m3s", "max_outflow_m3s",
    "water_withdrawal_m3s",
)  # fmt: skip
PRICES = (
    "spillage_cost", "turbined_violation_below_cost", "outflow_violation_below_cost",
    "outflow_violation_above_cost", "generation_violation_below_cost",
    "water_withdrawal_violation_pos_cost", "water_withdrawal_violation_neg_cost",
    "inflow_nonnegativity_cost",
)  # fmt: skip
WITHDRAWAL = "water_withdrawal_violation_cost"
UNUSED = {  # prices of what a case that is read does not have
    "fpha_turbined_cost", "diversion_cost", "storage_violation_below_cost",
    "filling_target_violation_cost", "evaporation_violation_cost",
    "evaporation_violation_pos_cost", "evaporation_violation_neg_cost",
}  # fmt: skip
OWN = {
    n
    for n in (*PRICES, WITHDRAWAL, "turbined_cost", *UNUSED)
    if n[-8:] not in ("pos_cost", "neg_cost")
}
LACKED = {
    "evaporation": "evaporation",
    "diversion": "diversion channels",
    "filling": "reservoirs that are being filled",
    "travel_time_hours": "travel times of water",
}
HEADS = {  # say how a head comes about, which a constant productivity does not need
    "tailrace", "hydraulic_losses", "efficiency", "specific_productivity_mw_per_m3s_per_m",
}  # fmt: skip


class Prices:
    """The prices of hydros: of all, unless a hydro has its own, unless a stage has its own."""

    def __init__(self, study: Study, usual: Field) -> None:
        self.study, self.usual = study, usual
        folder = study.folder
        folder.known(usual, {*PRICES, WITHDRAWAL, "turbined_cost", *UNUSED})
        file = "constraints/penalty_overrides_hydro.parquet"
        self.rows = Rows(folder, file, "hydro_id", (*PRICES, *UNUSED))

    def of(self, field: Field, name: str) -> np.ndarray:
        """Return a price [T] of 1 m3/s in an hour, or of 1 MWh."""
        own = at(field, "penalties")
        withdrawal = name.startswith("water_withdrawal")
        price = None if own is None else at(own, WITHDRAWAL if withdrawal else name)
        if price is None:
            price = at(self.usual, name)
        if price is None and name == "inflow_nonnegativity_cost":
            base = 1000.0
        else:
            base = (price or self.usual.get(WITHDRAWAL if withdrawal else name)).number(0.0)
        return np.array(self.rows.values(self.study.stages, field.value["id"], name, base))


class Hydros:
    """Reads `system/hydros.json` and what changes it."""

    def __init__(self, study: Study, penalties: Field, bought: bool) -> None:
        self.study, self.bought = study, bought
        self.prices = Prices(study, penalties.get("hydro"))
        file = "constraints/hydro_bounds.parquet"
        self.bounds = Rows(study.folder, file, "hydro_id", BOUNDS)
        self.production = Production(study)
        root = study.folder.json("system/hydros.json")
        study.folder.known(root, {"hydros"})
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
        return self._bound(field, "water_withdrawal_m3s", 0.0)

    def _bound(self, field: Field, name: str, base: float) -> np.ndarray:
        """Return a bound [T] of a hydro."""
        return np.array(self.bounds.values(self.study.stages, field.value["id"], name, base))

    def _read(self, field: Field) -> dict[str, Any]:
        """Return one reservoir."""
        self._check(field)
        study, reservoir, key = self.study, field.get("reservoir"), field.value["id"]
        if key not in self.start:
            raise field.get("id").error("a hydro with a volume in initial_conditions.json")
        low, high = (
            study.constant(self._bound(field, n, reservoir.get(n).number(0.0)), "bounds of storage")
            for n in ("min_storage_hm3", "max_storage_hm3")
        )
        below = at(field, "downstream_id")
        if below is not None and below.value not in self.index:
            raise below.error("the number of a hydro")
        capacity = self._capacity(field)
        hydro = {
            "name": field.get("name").text(),
            "vmin": float(low),
            "vmax": float(high),
            "v0": self.start[key],
            "segments": self._segments(field, capacity),
            "spill_cost": self._price(field, "spillage_cost", "costs of spillage"),
            "downstream": -1 if below is None else self.index[below.value],
            "limits": self._limits(field, capacity),
        }
        price = self._water_price(field)
        return hydro if price is None else hydro | {"water_cost": price}

    def _check(self, field: Field) -> None:
        """Take down what this program lacks of one hydro."""
        study, folder = self.study, self.study.folder
        known = {"id", "name", "bus_id", "downstream_id", "reservoir", "outflow", "generation"}
        known |= {"unit_groups", "penalties", *HEADS, *LIFE}
        folder.known(field, known, LACKED)
        folder.known(field.get("reservoir"), {"min_storage_hm3", "max_storage_hm3"})
        folder.known(field.get("outflow"), {"min_outflow_m3s", "max_outflow_m3s"})
        own = at(field, "penalties")
        turbined = number(self.prices.usual, "turbined_cost", 0.0)
        if own is not None:
            folder.known(own, OWN)
            turbined = number(own, "turbined_cost", turbined)
        folder.lack_if({"costs of turbined water": turbined != 0.0})
        folder.known(field.get("generation"), {"model", "productivity_mw_per_m3s", *TURBINE})
        groups = items(field, "unit_groups")
        folder.lack_if({"hydros with several unit groups": len(groups) > 1})
        for group in groups:
            folder.known(group, {"id", "name", "bus_id", *TURBINE})
            least = [n for n in TURBINE if n.startswith("min")]
            own = field.get("generation")
            more = any(group.get(n).number() > own.get(n).number() for n in least)
            folder.lack_if({"unit groups with larger least flows than their hydros": more})
        study.check_life(field)

    def _price(self, field: Field, name: str, what: str) -> float:
        """Return a price of 1 hm3, which all stages must share."""
        return float(self.study.constant(self.prices.of(field, name), what) / WATER)

    def _capacity(self, field: Field) -> np.ndarray:
        """Return the most [T] that turbines take, in m3/s: for their power, too."""
        parts = [field.get("generation"), *items(field, "unit_groups")]
        water, power = (
            self._bound(field, name, min(part.get(name).number(0.0) for part in parts))
            for name in ("max_turbined_m3s", "max_generation_mw")
        )
        rho = self.production.of(field)
        return np.minimum(
            water, np.divide(power, rho, out=np.full_like(water, np.inf), where=rho > 0.0)
        )

    def _segments(self, field: Field, capacity: np.ndarray) -> list[dict[str, Any]]:
        """Return the turbine of each block, once for every productivity that it has in a stage."""
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

        Cobre has them in each block. Ours hold for a stage, which is the same in one block, and for
        a most outflow that turbines cannot exceed: spill then goes to blocks that have room for it.
        """
        folder, several = self.study.folder, self.study.stages.several_blocks
        outflow, generation = field.get("outflow"), field.get("generation")
        most = number(outflow, "max_outflow_m3s", np.inf)
        bounds = {
            "outflow": self._bound(
                field, "min_outflow_m3s", outflow.get("min_outflow_m3s").number()
            ),
            "turbined": self._bound(
                field, "min_turbined_m3s", generation.get("min_turbined_m3s").number()
            ),
        }
        power = self._bound(
            field, "min_generation_mw", generation.get("min_generation_mw").number()
        )
        above = self._bound(field, "max_outflow_m3s", most)
        least = any((b[several] > 0.0).any() for b in (*bounds.values(), power))
        folder.lack_if(
            {
                "least flows or powers of hydros in stages of several blocks": least,
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
        """Return the limit of turbined water by which a hydro gives at least a power [T]."""
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
        """Return the limit of a least flow [T]."""
        return {"of": kind, "least": self._volume(flow), "below_cost": price, "above_cost": 0.0}

    def _volume(self, flow: np.ndarray) -> float | list[float]:
        """Return the hm3 of a flow [T]."""
        return shorten(flow * self.study.stages.water)

    def _water_price(self, field: Field) -> float | None:
        """Return the price of 1 hm3 of water that is not there, or None if it cannot be had.

        It makes up for a negative inflow, or for water that is not withdrawn: the cheaper counts.
        """
        price = np.full(len(self.study.stages.ids), np.inf)
        if self.bought:
            price = np.minimum(price, self.prices.of(field, "inflow_nonnegativity_cost"))
        withdrawn = self.prices.of(field, "water_withdrawal_violation_neg_cost")
        price = np.where(self.withdrawal(field) > 0.0, np.minimum(price, withdrawn), price)
        value = self.study.constant(price, "prices of missing water") / WATER
        return None if np.isinf(value) else float(value)

    def _check_withdrawals(self, hydros: list[dict[str, Any]]) -> None:
        """Take down if it could pay to withdraw more water than asked: if spilling costs more."""
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


def _read_start(folder: Folder) -> dict[int, float]:
    """Return the volume of each hydro at the start, by its number."""
    root = folder.json("initial_conditions.json")
    # What flowed before the first stage matters only where inflows depend on past ones.
    past = {"past_inflows", "recent_observations"}
    ahead = {"past_anticipated_commitments": "thermal plants that are dispatched ahead"}
    lacked = {"filling_storage": LACKED["filling"], "past_defluences": LACKED["travel_time_hours"]}
    folder.known(root, {"storage", *past}, lacked | ahead)
    for field in root.get("storage").items():
        folder.known(field, {"hydro_id", "value_hm3"})
    return {
        f.get("hydro_id").integer(0): f.get("value_hm3").number(0.0) for f in items(root, "storage")
    }
