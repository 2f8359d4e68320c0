"""A folder of Cobre's: its files, what is lacked for them, and errors that name a field."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from case.fields import CaseError, Field

NOT_LACKED = {
    "config.json", "penalties.json", "stages.json", "initial_conditions.json",
    "system/buses.json", "system/hydros.json", "system/lines.json", "system/thermals.json",
    "system/hydro_production_models.json",
    "system/hydro_geometry.parquet",  # of FPHA and evaporation, which are lacked by their own names
    "scenarios/inflow_seasonal_stats.parquet", "scenarios/load_seasonal_stats.parquet",
    "scenarios/load_factors.json", "scenarios/noise_openings.parquet",
    "scenarios/correlation.json",  # matters where openings are drawn
    "constraints/hydro_bounds.parquet", "constraints/thermal_bounds.parquet",
    "constraints/line_bounds.parquet", "constraints/exchange_factors.json",
    "constraints/penalty_overrides_bus.parquet", "constraints/penalty_overrides_line.parquet",
    "constraints/penalty_overrides_hydro.parquet",
}  # fmt: skip
SOURCES = "non-controllable sources"
PAST = "inflows that depend on those before"
LACKED = {
    "system/non_controllable_sources.json": SOURCES,
    "system/pumping_stations.json": "pumping stations",
    "system/energy_contracts.json": "contracts",
    "system/fpha_hyperplanes.parquet": "FPHA",
    "scenarios/inflow_history.parquet": "a model fitted to past inflows",
    "scenarios/inflow_ar_coefficients.parquet": PAST,
    "scenarios/inflow_annual_component.parquet": PAST,
    "scenarios/external_inflow_scenarios.parquet": "external scenarios",
    "scenarios/external_load_scenarios.parquet": "external scenarios",
    "scenarios/external_ncs_scenarios.parquet": "external scenarios",
    "scenarios/non_controllable_factors.json": SOURCES,
    "scenarios/non_controllable_stats.parquet": SOURCES,
    "constraints/pumping_bounds.parquet": "pumping stations",
    "constraints/contract_bounds.parquet": "contracts",
    "constraints/ncs_bounds.parquet": SOURCES,
    "constraints/penalty_overrides_ncs.parquet": SOURCES,
    "constraints/generic_constraints.json": "generic constraints",
    "constraints/generic_constraint_bounds.parquet": "generic constraints",
}
PARTS = "system", "scenarios", "constraints"


class NotFromCobre(Exception):
    """A case of Cobre's is not read; the message is a sentence that says why."""


def at(field: Field, name: str) -> Field | None:
    """Return the field `name` of an object, or None if it is left out or null."""
    return field.get(name) if field.has(name) and field.value[name] is not None else None


def items(field: Field, name: str) -> list[Field]:
    """Return the elements of the list `name`, none if it is left out or null."""
    part = at(field, name)
    return [] if part is None else part.items()


def number(field: Field, name: str, default: float) -> float:
    """Return the number `name`, or `default` if it is left out or null."""
    part = at(field, name)
    return default if part is None else part.number()


class Folder:
    """The files of a case, and the features of it that this program lacks.

    Features are gathered while files are read, so that one sentence names them all.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.resolve().name
        self.lacked: dict[str, None] = {}  # an ordered set

    def lack(self, feature: str) -> None:
        """Take down a feature that this program lacks."""
        self.lacked[feature] = None

    def lack_if(self, features: Mapping[str, bool]) -> None:
        """Take down each feature whose value is true."""
        for feature, is_there in features.items():
            if is_there:
                self.lack(feature)

    def refuse(self) -> None:
        """Raise `NotFromCobre` if a feature is lacked."""
        if self.lacked:
            *first, last = self.lacked
            told = f"{', '.join(first)} and {last}" if first else last
            raise NotFromCobre(
                f"{self.name} is not read, because it has {told}, which this program lacks"
            )

    def known(
        self, field: Field, names: Iterable[str], features: Mapping[str, str] | None = None
    ) -> None:
        """Take down every field of an object that has a value and is not one of `names`."""
        features = features or {}
        if not isinstance(field.value, dict):
            raise field.error("an object")
        for name in field.value.keys() - set(names) - {"$schema"}:
            if field.value[name] not in (None, [], {}):
                part = field.get(name)
                path = re.sub(r"\[\d+\]", "", part.path)
                file = part.file.removeprefix(f"{self.name}/")
                self.lack(features.get(name, f"the field {path} of {file}"))

    def has(self, file: str) -> bool:
        """Return whether there is such a file."""
        return (self.path / file).is_file()

    def json(self, file: str) -> Field:
        """Return what is in a JSON file."""
        label = f"{self.name}/{file}"
        if not self.has(file):
            raise CaseError(label, "the file", "nothing", "this file of a case of Cobre's")
        try:
            return Field(label, "", json.loads((self.path / file).read_text(encoding="utf-8")))
        except (ValueError, RecursionError) as error:
            raise CaseError(
                label, "the file", f"no valid JSON ({error})", "a JSON object"
            ) from None

    def rows(self, file: str, keys: Iterable[str], values: Iterable[str]) -> list[dict[str, Any]]:
        """Return the rows of a Parquet file, none if it is not there.

        Columns that are neither `keys` nor `values` are taken down if they have values.
        """
        if not self.has(file):
            return []
        table = self._table(file).to_pydict()
        label = f"{self.name}/{file}"
        for name in keys:
            if name not in table:
                raise CaseError(label, name, "nothing", "this column: it is required")
            for row, value in enumerate(table[name]):
                Field(label, f"{name}[{row}]", value).number()
        for name in values:
            for row, value in enumerate(table.get(name, [])):
                if value is not None:
                    Field(label, f"{name}[{row}]", value).number()
        for name in sorted(table.keys() - set(keys) - set(values)):
            if any(value is not None for value in table[name]):
                self.lack(f"the column {name} of {file}")
        names = list(table)
        return [dict(zip(names, row, strict=True)) for row in zip(*table.values(), strict=True)]

    def _table(self, file: str) -> Any:
        """Return a Parquet file as a table."""
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise NotFromCobre(
                f"{self.name} is not read, because its Parquet files need pyarrow: "
                "pip install pyarrow"
            ) from None
        try:
            return pyarrow.parquet.read_table(self.path / file)
        except (pyarrow.ArrowException, ValueError) as error:
            found = f"no valid Parquet ({str(error).splitlines()[0]})"
            raise CaseError(f"{self.name}/{file}", "the file", found, "a table") from None

    def check_files(self) -> None:
        """Take down every file that this program does not read, unless it is empty."""
        found = [*self.path.glob("*.json"), *self.path.glob("*.parquet")]
        for part in PARTS:
            found += (self.path / part).rglob("*")
        for path in sorted(found):
            file = path.relative_to(self.path).as_posix()
            if path.suffix not in (".json", ".parquet") or file in NOT_LACKED:
                continue
            if not self._is_empty(file):
                self.lack(LACKED.get(file, f"the file {file}"))

    def _is_empty(self, file: str) -> bool:
        """Return whether a file that is not read says nothing."""
        if file.endswith(".parquet"):
            return bool(self._table(file).num_rows == 0)
        content = self.json(file).value
        return isinstance(content, dict) and not any(
            value for name, value in content.items() if name != "$schema"
        )
