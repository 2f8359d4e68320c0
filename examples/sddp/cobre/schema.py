"""What a file of Cobre's may contain, as a declaration against which the file is checked.

A JSON file is an object, and a table is a list of rows. Cobre 0.5 and 0.18 differ in some fields.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import product
from typing import ClassVar, Protocol

from case.fields import CaseError, Field

DATE_FORM = re.compile(r"\d{4}-\d{2}-\d{2}")
ABSENT = None, [], {}


class Context(Protocol):
    """What a check must know about the folder: its version, its numbers, and what is lacking."""

    is_new: bool
    ids: dict[str, list[int]]

    def lack(self, feature: str) -> None:
        """Note a feature that this program lacks."""

    def relative(self, part: Field) -> str:
        """Return the name of the file of a field inside the folder."""


class Kind(Protocol):
    """The kind of a value."""

    def check(self, value: Field, context: Context) -> None:
        """Raise `CaseError` if the value is of another kind."""


@dataclass(frozen=True)
class Number:
    """A finite number that is at least `least`, and more than `above`."""

    least: float = -math.inf
    above: float = -math.inf
    column: ClassVar[str] = "double"

    def check(self, value: Field, context: Context) -> None:
        """See `Kind`."""
        if value.number(self.least) <= self.above:
            raise value.error(f"more than {self.above:g}")


@dataclass(frozen=True)
class Integer:
    """An integer from `least` to `most`; if `of` is given, the number of one of these things."""

    least: int = -(2**31)
    most: int = 2**31 - 1
    of: str | None = None
    column: str = "int32"

    def check(self, value: Field, context: Context) -> None:
        """See `Kind`."""
        if value.integer(self.least) > self.most:
            raise value.error(f"at most {self.most}")
        if self.of is not None and value.value not in context.ids[self.of]:
            raise value.error(f"the number of a {self.of}")


@dataclass(frozen=True)
class Text:
    """A string, and one of `values` if there are any."""

    values: tuple[str, ...] = ()

    def check(self, value: Field, context: Context) -> None:
        """See `Kind`."""
        if value.text() not in (self.values or (value.value,)):
            raise value.error("one of " + ", ".join(self.values))


@dataclass(frozen=True)
class Date:
    """A date such as 2024-01-31."""

    def check(self, value: Field, context: Context) -> None:
        """See `Kind`."""
        try:
            if not DATE_FORM.fullmatch(value.text()):
                raise ValueError
            date.fromisoformat(value.text())
        except ValueError:
            raise value.error("a date such as 2024-01-31") from None


@dataclass(frozen=True)
class Anything:
    """A value that is not read."""

    def check(self, value: Field, context: Context) -> None:
        """See `Kind`."""


@dataclass(frozen=True)
class Object:
    """An object, or a row of a table, with its fields by name.

    Only 0.18 has the fields `new`, and it requires them; only 0.5 has the fields `old`. If a field
    of `features` has a value, the feature that `features` names for this field is noted as lacking.
    An unknown field is noted too. `rule` says how fields must fit each other.
    """

    required: Mapping[str, Kind] = field(default_factory=dict)
    optional: Mapping[str, Kind] = field(default_factory=dict)
    new: Mapping[str, Kind] = field(default_factory=dict)
    old: Mapping[str, Kind] = field(default_factory=dict)
    features: Mapping[str, str] = field(default_factory=dict)
    rule: Callable[[Field], None] | None = None

    def fields(self, is_new: bool) -> dict[str, Kind]:
        """Return all fields that this version has."""
        return {**self.required, **self.optional, **self.new, **({} if is_new else self.old)}

    def needed(self, is_new: bool) -> dict[str, Kind]:
        """Return the fields that this version requires."""
        return {**self.required, **(self.new if is_new else {})}

    def check(self, value: Field, context: Context) -> None:
        """See `Kind`."""
        if not isinstance(value.value, dict):
            raise value.error("an object")
        self._take_down(value, context)
        needed = self.needed(context.is_new)
        for name, kind in self.fields(context.is_new).items():
            if name in needed or value.value.get(name) is not None:
                kind.check(value.get(name), context)
        if self.rule is not None:
            self.rule(value)

    def _take_down(self, value: Field, context: Context) -> None:
        """Note what this program lacks."""
        declared = self.fields(context.is_new).keys() | {"$schema"}
        for name, content in value.value.items():
            has_value = content not in ABSENT
            if name in self.features:
                if has_value:
                    context.lack(self.features[name])
            elif name not in declared and (has_value or context.is_new):
                # 0.18 refuses an unknown field even if the field has no value.
                part = value.get(name)
                path = re.sub(r"\[\d+\]", "", part.path)
                context.lack(f"the field {path} of {context.relative(part)}")


@dataclass(frozen=True)
class List:
    """A list, or the rows of a table, in which no two entries have the same `key`.

    If `defines` is given, the field `id` is the number of such a thing, to which other files may
    refer. If there are any rows, there is one for each combination of the things in `complete`,
    which are in the order of `key`.
    """

    item: Kind
    key: tuple[str, ...] = ()
    least: int = 0
    defines: str | None = None
    complete: tuple[str, ...] = ()
    rule: Callable[[Field], None] | None = None

    def check(self, value: Field, context: Context) -> None:
        """See `Kind`."""
        rows = value.items()
        if len(rows) < self.least:
            raise value.error(f"a list of at least {self.least}")
        if self.defines is not None:
            context.ids[self.defines] = [row.get("id").integer(-(2**31)) for row in rows]
        self.check_rows(rows, context)
        if self.rule is not None:
            self.rule(value)

    def check_rows(self, rows: Sequence[Field], context: Context) -> None:
        """Check every row, and how the rows fit together."""
        found = set()
        for row in rows:
            self.item.check(row, context)
            key = tuple(row.value[name] for name in self.key)
            if key and key in found:
                raise CaseError(
                    row.file, ", ".join(row.get(name).path for name in self.key),
                    " and ".join(map(str, key)), "what no other entry has",
                )  # fmt: skip
            found.add(key)
        if rows and self.complete:
            self._check_complete(rows[0].file, found, context)

    def _check_complete(self, file: str, found: set[tuple[int, ...]], context: Context) -> None:
        """Raise `CaseError` for the first combination without a row."""
        for key in product(*(sorted(context.ids[things]) for things in self.complete)):
            if key not in found:
                told = ", ".join(f"{n} {v}" for n, v in zip(self.key, key, strict=True))
                things = " and ".join(f"every {thing}" for thing in self.complete)
                raise CaseError(file, told, "no row", f"a row for {things}")


def ordered(*pairs: tuple[str, str]) -> Callable[[Field], None]:
    """Return the rule that in each pair the first field is not more than the second."""

    def rule(value: Field) -> None:
        for low, high in pairs:
            bounds = [value.value.get(name) for name in (low, high)]
            if None not in bounds and bounds[0] > bounds[1]:
                raise value.get(low).error(f"at most {high}, {bounds[1]:g}")

    return rule


COUNT = Integer(0)
NUMBER = Number()
AMOUNT = Number(0.0)
PRICE = Number(above=0.0)
TEXT = Text()
DATE = Date()
ANYTHING = Anything()
BUS, HYDRO, LINE, STAGE = (Integer(of=thing) for thing in ("bus", "hydro", "line", "stage"))
PAST_STAGE = Integer(of="stage of the study or before it")
LIFE = {"entry_stage_id": Integer(), "exit_stage_id": Integer()}
START = {"operational_start_date": DATE}
