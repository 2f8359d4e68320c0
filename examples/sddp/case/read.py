"""Read a case from JSON, and check every field.

The schema is in README.md. Shapes that the file may abbreviate are spelled out: every hydro has
segments, a number for all stages becomes one for each stage, and every opening has its demand by
bus.
"""

import json

from case.data import Case
from case.fields import CaseError, Field
from case.system import read_buses, read_hydros, read_line, read_thermal

FEATURES = (
    "cascade", "stage_cost", "random_demand", "segments", "random_stage1", "deterministic",
    "buses", "lines", "limits", "discount",
)  # fmt: skip


def parse_case(data: bytes, file: str) -> Case:
    """Return the case in `data`; `file` is only named in errors.

    Raises
    ------
    CaseError
        Names the file, the field, what was found and what was expected.
    """
    try:
        root = Field(file, "", json.loads(data.decode("utf-8")))
    except (ValueError, RecursionError) as error:
        raise CaseError(file, "the file", f"no valid JSON ({error})", "a JSON object") from None
    _refuse_unsupported(root)
    stages = root.get("stages").integer(1)
    # The probabilities are read first: if they do not have an entry for each stage, the number of
    # stages is wrong, and no lists of that length are made.
    probabilities = _read_probabilities(root.get("probabilities"), stages)
    buses = read_buses(root, stages)
    hydros = read_hydros(root.get("hydros"), stages, len(buses))
    openings = [len(p) for p in probabilities]
    lines = []
    if root.has("lines"):
        lines = root.get("lines").each(lambda f: read_line(f, stages, len(buses)))
    known, is_bound = _read_known(root)
    return Case(
        name=root.get("name").text(),
        stages=stages,
        hydros=hydros,
        thermals=root.get("thermals").each(lambda f: read_thermal(f, stages, len(buses))),
        buses=buses,
        lines=lines,
        demand=_read_demand(root, openings, len(buses)),
        inflows=_read_inflows(root.get("inflows"), openings, len(hydros)),
        probabilities=probabilities,
        discount=_read_discount(root.get("discount"), stages),
        known=known,
        known_is_bound=is_bound,
    )


def _refuse_unsupported(root: Field) -> None:
    """Raise if the case needs a feature that this example does not have."""
    for feature in root.get("features").items():
        if feature.text() not in FEATURES:
            raise feature.error("one of " + ", ".join(FEATURES))
    if root.get("terminal_value").number() != 0.0:
        raise root.get("terminal_value").error("0 (a terminal value is not supported)")


def _read_probabilities(field: Field, stages: int) -> list[list[float]]:
    """Return the probabilities; each row must sum to one."""
    rows = field.items(stages, "one per stage")
    for row in rows:
        total = sum(row.each(lambda f: f.number(0.0, 1.0)))
        if abs(total - 1.0) > 1e-9:
            raise row.error("numbers that sum to 1", f"a list that sums to {total:.12g}")
    return [row.each(Field.number) for row in rows]


def _read_demand(root: Field, openings: list[int], buses: int) -> list[list[list[float]]]:
    """Return the demand of every opening, from `demand_outcomes` if the file has it."""
    stages = len(openings)
    demand = [demand_by_bus(f, buses) for f in root.get("demand").items(stages, "one per stage")]
    if not root.has("demand_outcomes") or root.value["demand_outcomes"] is None:
        return [[d] * k for d, k in zip(demand, openings, strict=True)]
    rows = root.get("demand_outcomes").items(stages, "one per stage")
    return [
        [demand_by_bus(f, buses) for f in row.items(count, "one per opening")]
        for row, count in zip(rows, openings, strict=True)
    ]


def demand_by_bus(field: Field, buses: int) -> list[float]:
    """Return a demand by bus; if there is one bus, the file may have a number."""
    if buses == 1 and not isinstance(field.value, list):
        return [field.number(0.0)]
    return field.numbers(buses, "one per bus", 0.0)


def _read_discount(field: Field, stages: int) -> list[float]:
    """Return the factor of each stage; a number in the file is the factor from stage to stage."""
    if isinstance(field.value, list):
        return field.numbers(stages, "one per stage", 0.0)
    factor = field.number(0.0, 1.0)
    return [factor**t for t in range(stages)]


def _read_inflows(field: Field, openings: list[int], hydros: int) -> list[list[list[float]]]:
    """Return the inflows of every opening; evaporation may make them negative."""
    stages = field.items(len(openings), "one per stage")
    rows = [s.items(k, "one per opening") for s, k in zip(stages, openings, strict=True)]
    return [[r.numbers(hydros, "one per hydro") for r in row] for row in rows]


def _read_known(root: Field) -> tuple[float | None, bool]:
    """Return the optimum that the file states, and whether it is only a lower bound.

    These fields describe the case, and are no part of it, so odd values are ignored.
    """
    try:
        verified = root.get("verified")
        is_bound = verified.has("method") and verified.get("method").value == "sddp"
        return verified.get("value").number(), is_bound
    except CaseError:
        pass
    try:
        published = root.get("published")
        scale = published.get("scale").number() if published.has("scale") else 1.0
        offset = published.get("offset").number() if published.has("offset") else 0.0
        return (published.get("value").number() - offset) / (scale or 1.0), False
    except CaseError:
        return None, False
