"""Reading fields of parsed JSON with their path in the file, so that errors can name the field."""

import json
import math
from collections.abc import Callable
from typing import Any, TypeVar

Item = TypeVar("Item")
HUGE = 1e30
"""The largest number: products and sums of several such numbers are finite."""


class CaseError(ValueError):
    """A case file is not a valid case.

    Attributes
    ----------
    file, path, found, expected : str
        Name of the file; path in it, such as `hydros[2].vmax`; found value; expected value.
    """

    def __init__(self, file: str, path: str, found: str, expected: str) -> None:
        super().__init__(file, path, found, expected)
        self.file, self.path, self.found, self.expected = file, path, found, expected

    def __str__(self) -> str:
        """Return one sentence made of the fields of the error."""
        return f"{self.file}: {self.path}: found {self.found}, expected {self.expected}"


def show(value: Any) -> str:
    """Return `value` as JSON, shortened to 60 characters."""
    if isinstance(value, dict):
        return f"an object with {len(value)} fields"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = repr(value) if isinstance(value, float) else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


class Field:
    """One value of a parsed JSON file, with its path in the file."""

    def __init__(self, file: str, path: str, value: Any) -> None:
        self.file, self.path, self.value = file, path, value

    def error(self, expected: str, found: str | None = None) -> CaseError:
        """Return the error that names this field, its value and the expected one."""
        found = show(self.value) if found is None else found
        return CaseError(self.file, self.path or "the file", found, expected)

    def has(self, name: str) -> bool:
        """Return whether this object has a field `name`."""
        return isinstance(self.value, dict) and name in self.value

    def get(self, name: str) -> "Field":
        """Return the required field `name` of this object."""
        if not isinstance(self.value, dict):
            raise self.error("an object")
        path = f"{self.path}.{name}" if self.path else name
        if name not in self.value:
            raise CaseError(self.file, path, "nothing", "this field: it is required")
        return Field(self.file, path, self.value[name])

    def items(self, length: int | None = None, what: str = "") -> list["Field"]:
        """Return the elements of this list; if `length` is not None, there must be so many."""
        if not isinstance(self.value, list):
            raise self.error("a list")
        if length is not None and len(self.value) != length:
            raise self.error(f"a list of {length} ({what})")
        return [Field(self.file, f"{self.path}[{i}]", v) for i, v in enumerate(self.value)]

    def number(self, least: float = -math.inf, most: float = math.inf) -> float:
        """Return this number; it must be from `least` to `most`, and at most `HUGE` in size."""
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)):
            raise self.error("a number")
        try:
            value = float(self.value)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            raise self.error("a finite number")
        if abs(value) > HUGE:
            raise self.error(f"a number of at most {HUGE:g} in size")
        if value < least:
            raise self.error(f"at least {least:g}")
        if value > most:
            raise self.error(f"at most {most:g}")
        return value

    def integer(self, least: int) -> int:
        """Return this integer, which must be at least `least`."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self.error("an integer")
        if self.value < least:
            raise self.error(f"at least {least}")
        return self.value

    def text(self) -> str:
        """Return this string, which must be writable."""
        if not isinstance(self.value, str):
            raise self.error("a string")
        try:
            self.value.encode()
        except UnicodeEncodeError:
            raise self.error("text without halves of a surrogate pair") from None
        return self.value

    def numbers(self, length: int, what: str, least: float = -math.inf) -> list[float]:
        """Return this list, which must have `length` numbers of at least `least`."""
        return [f.number(least) for f in self.items(length, what)]

    def per_stage(self, stages: int, least: float = -math.inf) -> list[float]:
        """Return these numbers, one per stage; a single number holds for all stages."""
        if isinstance(self.value, list):
            return self.numbers(stages, "one per stage", least)
        return [self.number(least)] * stages

    def each(self, read: Callable[["Field"], Item]) -> list[Item]:
        """Return what `read` gives for every element."""
        return [read(f) for f in self.items()]
