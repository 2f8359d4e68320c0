"""The missed targets, numbered, each with its note in notes.toml."""

from __future__ import annotations

import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from bench.report.outcomes import Outcome

KEYS = {"row", "ranks", "beside", "tried", "limit"}


@dataclass(frozen=True)
class Miss:
    """Outcomes of one row that share a note, or that have none."""

    number: int
    outcomes: list[Outcome]
    tried: str | None = None
    limit: str | None = None


def read_notes(path: Path) -> list[dict]:
    """Return the entries; a misspelt one is an error."""
    entries = tomllib.loads(path.read_text()).get("miss", []) if path.exists() else []
    for entry in entries:
        if "row" not in entry or not set(entry) <= KEYS:
            raise ValueError(f"{path}: an entry has a row and some of {sorted(KEYS)}: {entry}")
    return entries


def number_misses(outcomes: list[Outcome], notes: list[dict]) -> list[Miss]:
    """Group the missed outcomes by row and note, in the order of the tables."""
    groups: dict[tuple, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.holds is False:
            note = _note_of(outcome, notes)
            groups.setdefault((outcome.row, note), []).append(outcome)
    used = {note for _, note in groups}
    for index, entry in enumerate(notes):
        if index not in used:
            print(f"notes.toml: no such miss: {_name(entry)}", file=sys.stderr)
    return [
        Miss(number, missed, *_texts(None if note is None else notes[note]))
        for number, ((_, note), missed) in enumerate(groups.items(), 1)
    ]


def footnotes(misses: list[Miss]) -> dict[Outcome, int]:
    """Return the number that stands beside a missed figure."""
    return {outcome: miss.number for miss in misses for outcome in miss.outcomes}


def _note_of(outcome: Outcome, notes: list[dict]) -> int | None:
    fitting = [
        index
        for index, entry in enumerate(notes)
        if entry["row"] == outcome.row
        and entry.get("ranks") in (None, outcome.ranks)
        and entry.get("beside") in (None, outcome.beside)
    ]
    return max(
        fitting, key=lambda index: len(notes[index].keys() & {"ranks", "beside"}), default=None
    )


def _texts(entry: dict | None) -> tuple[str | None, str | None]:
    entry = entry or {}
    return entry.get("tried"), entry.get("limit")


def _name(entry: dict) -> str:
    return ", ".join(f"{key} {entry[key]}" for key in ("row", "ranks", "beside") if key in entry)
