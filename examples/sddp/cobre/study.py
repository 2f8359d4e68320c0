"""What all parts of a case of Cobre's need: stages, buses, and values that differ by stage."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from case.fields import CaseError, Field

from cobre.folder import Folder, at
from cobre.schema import STAGE, Integer, Kind, List, Object
from cobre.stages import Stages


@dataclass(frozen=True)
class Study:
    """A folder, its stages, and the index of each bus by its number in Cobre."""

    folder: Folder
    stages: Stages
    buses: dict[int, int]

    @property
    def blocks(self) -> range:
        """The blocks of a stage; in each block, a bus of Cobre's is a bus of ours."""
        return range(self.stages.hours.shape[1])

    def bus(self, field: Field, name: str, block: int) -> int:
        """Return our index of a bus in a block; the field `name` has the number of the bus."""
        return self.buses[field.get(name).value] * len(self.blocks) + block

    def block(self, field: Field, stage: int) -> int:
        """Return the number of a block in the field `block_id`; the stage has this block."""
        block = field.get("block_id").integer(0)
        t = self.stages.ids.index(stage)
        if block not in self.blocks or self.stages.hours[t, block] == 0.0:
            raise field.get("block_id").error(f"the number of a block of stage {stage}")
        return block

    def energy(self, power: Sequence[float] | float, block: int) -> float | list[float]:
        """Return the energy, in a block, of a power in MW, which may differ between stages."""
        return shorten(np.multiply(power, self.stages.hours[:, block]))

    def named(self, name: str, block: int) -> str:
        """Return the name of a bus, line or thermal plant in one block."""
        return name if len(self.blocks) == 1 else f"{name}, block {block}"

    def constant(self, values: Iterable[float], what: str) -> float:
        """Return the value that all stages share; note as lacking values that differ."""
        first, *others = values
        if any(value != first for value in others):
            self.folder.lack(f"{what} that differ between stages")
        return first

    def check_life(self, field: Field) -> None:
        """Note as lacking whatever does not exist in all stages."""
        start = at(field, "operational_start_date")
        self.folder.lack_if(
            {
                "plants, buses or lines that come or go": at(field, "entry_stage_id") is not None
                or at(field, "exit_stage_id") is not None
                or (start is not None and start.text() > self.stages.begin.isoformat())
            }
        )


class Rows:
    """The values of a Parquet file that has a row for some pairs of an entity and a stage.

    If `complete` is set and there are rows, every pair has a row. `part` is the column of something
    that belongs to the entity; an entity has only one of these things.
    """

    def __init__(
        self,
        folder: Folder,
        file: str,
        entity: Integer,
        columns: Mapping[str, Kind],
        stage: Integer = STAGE,
        complete: bool = False,
        part: str | None = None,
    ) -> None:
        things = str(entity.of)
        self.label, self.key = f"{folder.name}/{file}", f"{things}_id"
        keys = {self.key: entity, "stage_id": stage} | ({} if part is None else {part: Integer()})
        row = Object({**keys, **columns}) if complete else Object(keys, columns)
        whole = (things, "stage") if complete else ()
        schema = List(row, key=tuple(keys), complete=whole)
        self.cells: dict[tuple[int, int], dict[str, Any]] = {
            (row[self.key], row["stage_id"]): row for row in folder.rows(file, schema)
        }

    def values(self, stages: Stages, entity: int, name: str, base: Any) -> list[Any]:
        """Return the values [T] of an entity; in stages without a row, the value is `base`."""
        told = [self.cells.get((entity, t), {}).get(name) for t in stages.ids]
        return [base if value is None else value for value in told]

    def ordered(
        self, stages: Stages, entity: int, low: tuple[str, Any], high: tuple[str, Any]
    ) -> None:
        """Raise `CaseError` if values [T] `low` of an entity are above `high`; both are named.

        Only values that rows change can be above: the other values have been compared before.
        """
        for t, least, most in zip(stages.ids, low[1], high[1], strict=True):
            if least > most:
                raise CaseError(
                    self.label, f"{low[0]} of {self.key} {entity}, stage_id {t}", f"{least:g}",
                    f"at most {high[0]}, {most:g}",
                )  # fmt: skip


def by_number(root: Field, name: str) -> list[Field]:
    """Return the entries of a list in the order of their numbers, which is Cobre's order."""
    return sorted(root.get(name).items(), key=lambda f: int(f.value["id"]))


def shorten(values: Any) -> float | list[float]:
    """Return the number that all stages share, or else the numbers of the stages."""
    listed = np.asarray(values, float).tolist()
    return listed[0] if all(value == listed[0] for value in listed) else listed
