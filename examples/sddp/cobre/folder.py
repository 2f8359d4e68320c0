"""A folder of Cobre's: its files, what this program lacks for them, errors that name a field."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from case.fields import CaseError, Field

from cobre.schema import Integer, Kind, List, Number, Object

NOT_LACKED = {
    "config.json", "penalties.json", "stages.json", "initial_conditions.json",
    "system/buses.json", "system/hydros.json", "system/lines.json", "system/thermals.json",
    "system/hydro_production_models.json",
    # about FPHA and evaporation, which are noted as missing features themselves
    "system/hydro_geometry.parquet",
    "scenarios/inflow_seasonal_stats.parquet", "scenarios/load_seasonal_stats.parquet",
    "scenarios/load_factors.json", "scenarios/noise_openings.parquet",
    "scenarios/correlation.json",  # matters only if openings are drawn
    "constraints/hydro_bounds.parquet", "constraints/thermal_bounds.parquet",
    "constraints/hydro_unit_group_bounds.parquet",
    "constraints/line_bounds.parquet", "constraints/exchange_factors.json",
    "constraints/penalty_overrides_bus.parquet", "constraints/penalty_overrides_line.parquet",
    "constraints/penalty_overrides_hydro.parquet",
}  # fmt: skip
NOT_IN_NEW = {"constraints/exchange_factors.json"}  # 0.18 refuses this file
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
    """A case of Cobre's cannot be read; the message is one sentence that says why."""


class Row(Field):
    """A row of a table; its path is its number, and the path of a value is `column[number]`."""

    def get(self, name: str) -> Field:
        """Return the value in a column, or None if the table lacks the column."""
        return Field(self.file, f"{name}[{self.path}]", self.value.get(name))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, after a check that no field is given twice."""
    told = dict(pairs)
    if len(told) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{max(names, key=names.count)} is given twice in one object")
    return told


def _refuse(name: str) -> NoReturn:
    """Refuse NaN and Infinity, which are not in JSON."""
    raise ValueError(f"{name} is no number")


def at(field: Field, name: str) -> Field | None:
    """Return the field `name` of an object, or None if the field is left out or null."""
    return field.get(name) if field.has(name) and field.value[name] is not None else None


def items(field: Field, name: str) -> list[Field]:
    """Return the elements of the list `name`; none if the list is left out or null."""
    part = at(field, name)
    return [] if part is None else part.items()


def number(field: Field, name: str, default: float) -> float:
    """Return the number `name`, or `default` if the number is left out or null."""
    part = at(field, name)
    return default if part is None else part.number()


class Folder:
    """The files of a case, and those features of the case that this program lacks.

    Features are gathered while files are read, so that one sentence can name all of them.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.resolve().name
        self.lacked: dict[str, None] = {}  # an ordered set
        # whether the folder is of 0.18 rather than 0.5, as its configuration says
        self.is_new = False
        self.ids: dict[str, list[int]] = {}  # the numbers of stages, buses and so on

    def lack(self, feature: str) -> None:
        """Note a feature that this program lacks."""
        self.lacked[feature] = None

    def lack_if(self, features: Mapping[str, bool]) -> None:
        """Note as lacking each feature that has the value True."""
        for feature, is_there in features.items():
            if is_there:
                self.lack(feature)

    def refuse(self) -> None:
        """Raise `NotFromCobre` if any feature was noted as lacking."""
        if self.lacked:
            *first, last = self.lacked
            told = f"{', '.join(first)} and {last}" if first else last
            raise NotFromCobre(
                f"{self.name} is not read, because it has {told}, which this program lacks"
            )

    def relative(self, part: Field) -> str:
        """Return the name of the file of a field inside the folder."""
        return part.file.removeprefix(f"{self.name}/")

    def has(self, file: str) -> bool:
        """Return whether the folder has this file."""
        return (self.path / file).is_file()

    def json(self, file: str, schema: Kind) -> Field:
        """Return the content of a JSON file, after a check against its schema."""
        root = self._parse(file)
        schema.check(root, self)
        return root

    def _parse(self, file: str) -> Field:
        """Return the content of a JSON file, unchecked."""
        label = f"{self.name}/{file}"
        if not self.has(file):
            raise CaseError(label, "the file", "nothing", "this file of a case of Cobre's")
        try:
            text = (self.path / file).read_text(encoding="utf-8")
            return Field(
                label, "", json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
            )
        except (ValueError, RecursionError) as error:
            raise CaseError(
                label, "the file", f"no valid JSON ({error})", "a JSON object"
            ) from None

    def rows(self, file: str, schema: List) -> list[dict[str, Any]]:
        """Return the rows of a Parquet file; none if the file does not exist.

        The rows are checked against the schema. A column that the schema does not have is noted as
        a lacking feature, if the column has values.
        """
        if not self.has(file):
            return []
        table, label = self._table(file), f"{self.name}/{file}"
        assert isinstance(schema.item, Object)
        kinds = schema.item.fields(self.is_new)
        types = {column.name: str(column.type) for column in table.schema}
        for name, kind in kinds.items():
            assert isinstance(kind, Number | Integer)
            if name not in types:
                if name in schema.item.needed(self.is_new):
                    raise CaseError(label, name, "nothing", "this column: it is required")
            elif types[name] != kind.column:
                raise CaseError(label, name, f"a column of {types[name]}", f"one of {kind.column}")
        for name in sorted(types.keys() - kinds.keys()):
            if table.column(name).null_count < table.num_rows:
                self.lack(f"the column {name} of {file}")
        rows = table.select([name for name in kinds if name in types]).to_pylist()
        schema.check_rows([Row(label, str(n), row) for n, row in enumerate(rows)], self)
        return rows

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
        """Note as lacking every file that this program does not read, unless the file is empty."""
        found = [*self.path.glob("*.json"), *self.path.glob("*.parquet")]
        for part in PARTS:
            found += (self.path / part).rglob("*")
        for path in sorted(found):
            file = path.relative_to(self.path).as_posix()
            if path.suffix not in (".json", ".parquet"):
                continue
            if file in NOT_LACKED and not (self.is_new and file in NOT_IN_NEW):
                continue
            if not self._is_empty(file):
                self.lack(LACKED.get(file, f"the file {file}"))

    def _is_empty(self, file: str) -> bool:
        """Return whether a file that is not read has no content."""
        if file.endswith(".parquet"):
            return bool(self._table(file).num_rows == 0)
        content = self._parse(file).value
        return isinstance(content, dict) and not any(
            value for name, value in content.items() if name != "$schema"
        )
