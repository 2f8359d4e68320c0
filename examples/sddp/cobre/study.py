"""What all parts of a case of Cobre's need: stages, buses, and values that differ by stage."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from case.fields import Field

from cobre.folder import Folder, at
from cobre.stages import Stages


@dataclass(frozen=True)
class Study:
    """A folder, its stages, and the place of each bus by its number in Cobre."""

    folder: Folder
    stages: Stages
    buses: dict[int, int]

    @property
    def blocks(self) -> range:
        """The blocks of a stage; a bus of Cobre's is one of ours in each of them."""
        return range(self.stages.hours.shape[1])

    def bus(self, field: Field, name: str, block: int) -> int:
        """Return our index of the bus with the number in the field `name`, in a block."""
        number = field.get(name).integer(0)
        if number not in self.buses:
            raise field.get(name).error("the number of a bus")
        return self.buses[number] * len(self.blocks) + block

    def energy(self, power: Sequence[float] | float, block: int) -> float | list[float]:
        """Return the energy of a power, in MW and maybe one per stage, in a block."""
        return shorten(np.multiply(power, self.stages.hours[:, block]))

    def named(self, name: str, block: int) -> str:
        """Return the name of what stands for something in one block."""
        return name if len(self.blocks) == 1 else f"{name}, block {block}"

    def constant(self, values: Iterable[float], what: str) -> float:
        """Return the value that all stages share; take down if they do not."""
        first, *others = values
        if any(value != first for value in others):
            self.folder.lack(f"{what} that differ between stages")
        return first

    def check_life(self, field: Field) -> None:
        """Take down if something is not there in all stages."""
        start = at(field, "operational_start_date")
        self.folder.lack_if(
            {
                "plants, buses or lines that come or go": at(field, "entry_stage_id") is not None
                or at(field, "exit_stage_id") is not None
                or (start is not None and start.text() > self.stages.begin.isoformat())
            }
        )


LIFE = {"entry_stage_id", "exit_stage_id", "operational_start_date"}


class Rows:
    """The values of a Parquet file with a row for some pairs of an entity and a stage."""

    def __init__(self, folder: Folder, file: str, key: str, names: Iterable[str]) -> None:
        self.cells: dict[tuple[int, int], dict[str, Any]] = {}
        for row in folder.rows(file, (key, "stage_id"), names):
            cell = self.cells.setdefault((row[key], row["stage_id"]), {})
            cell.update({n: float(row[n]) for n in names if row.get(n) is not None})

    def values(self, stages: Stages, entity: int, name: str, base: Any) -> list[Any]:
        """Return the value [T] of an entity: `base` in stages without one."""
        return [self.cells.get((entity, t), {}).get(name, base) for t in stages.ids]


def by_number(root: Field, name: str) -> list[Field]:
    """Return the entries of a list in the order of their numbers, which is Cobre's."""
    entries = sorted(root.get(name).items(), key=lambda f: f.get("id").integer(0))
    for before, entry in pairwise(entries):
        if before.value["id"] == entry.value["id"]:
            raise entry.get("id").error("a number that no other has")
    return entries


def shorten(values: Any) -> float | list[float]:
    """Return the number that all stages share, or else one per stage."""
    listed = np.asarray(values, float).tolist()
    return listed[0] if all(value == listed[0] for value in listed) else listed
