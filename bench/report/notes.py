"""The missed targets, numbered; each has its note in notes.toml."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.report.outcomes import Outcome

KEYS = {"row", "ranks", "beside", "tried", "limit"}
FAR_APART = 3  # if two ratios of a row differ by more, the measurement is wrong, or there is a note


@dataclass(frozen=True)
class Miss:
    """Outcomes of one row that share a note, or that have no note."""

    number: int
    outcomes: list[Outcome]
    tried: str | None = None
    limit: str | None = None


def read_notes(path: Path) -> list[dict]:
    """Return the entries of a file; a misspelt entry is an error."""
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


def unexplained(rows: Iterable[list[Outcome]], notes: list[dict]) -> list[str]:
    """Return a sentence for each row with ratios that are far apart and have no note.

    An entry of ``notes.toml`` that names the ranks of the larger ratio explains the row.
    """
    found = []
    for row in rows:
        ratios = [each for each in row if each.value and not each.unit]
        if not ratios:
            continue
        least, most = (choose(ratios, key=lambda each: each.value) for choose in (min, max))
        note = _note_of(most, notes)
        explained = note is not None and notes[note].get("ranks") == most.ranks
        if most.value > FAR_APART * least.value and not explained:
            found.append(
                f"{most.row}: {most.value:.3g} with {most.ranks} ranks and {least.value:.3g} with "
                f"{least.ranks} ranks are more than {FAR_APART} times apart; measure the row "
                "again, or say why in notes.toml, in an entry with the row and these ranks"
            )
    return found


def footnotes(misses: list[Miss]) -> dict[Outcome, int]:
    """Return, for each missed outcome, the number that stands beside its figure."""
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
