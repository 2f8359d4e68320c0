"""Read a case from JSON, and check every field.

The schema is described in README.md. Shapes that the file may abbreviate are spelled out here:
every hydro has segments, every thermal a cost per stage, every opening its demand.
"""

import json

from case.data import Case, Hydro, Segment, Thermal
from case.fields import CaseError, Field

FEATURES = (
    "cascade", "stage_cost", "random_demand", "segments", "random_stage1", "deterministic",
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
    hydros = _read_hydros(root.get("hydros"))
    probabilities = _read_probabilities(root.get("probabilities"), stages)
    openings = [len(p) for p in probabilities]
    known, is_bound = _read_known(root)
    return Case(
        name=root.get("name").text(),
        stages=stages,
        hydros=hydros,
        thermals=root.get("thermals").each(lambda f: _read_thermal(f, stages)),
        deficit_cost=root.get("deficit_cost").number(0.0),
        demand=_read_demand(root, stages, openings),
        inflows=_read_inflows(root.get("inflows"), openings, len(hydros)),
        probabilities=probabilities,
        known=known,
        known_is_bound=is_bound,
    )


def _refuse_unsupported(root: Field) -> None:
    """Raise if the case needs a feature that this example lacks."""
    for feature in root.get("features").items():
        if feature.text() not in FEATURES:
            raise feature.error("one of " + ", ".join(FEATURES))
    if root.get("discount").number() != 1.0:
        raise root.get("discount").error("1 (discounting is not supported)")
    if root.get("terminal_value").number() != 0.0:
        raise root.get("terminal_value").error("0 (a terminal value is not supported)")


def _read_hydros(field: Field) -> list[Hydro]:
    """Return the reservoirs; there must be at least one, and no circle of them."""
    count = len(field.items())
    if count == 0:
        raise field.error("at least one hydro")
    hydros = field.each(lambda f: _read_hydro(f, count))
    for h in range(count):
        receiver, steps = h, 0
        while hydros[receiver].downstream >= 0 and steps <= count:
            receiver, steps = hydros[receiver].downstream, steps + 1
        if steps > count:
            raise field.items()[h].get("downstream").error("a way to the sea, not a circle")
    return hydros


def _read_hydro(field: Field, count: int) -> Hydro:
    """Return one of `count` reservoirs."""
    low = field.get("vmin").number(0.0)
    high = field.get("vmax").number(0.0)
    if high < low:
        raise field.get("vmax").error(f"at least vmin, {low:g}")
    v0 = field.get("v0").number(low, high)
    downstream = field.get("downstream").integer(-1)
    own = int(field.path[field.path.rindex("[") + 1 : -1])
    if downstream >= count:
        raise field.get("downstream").error(f"-1 or the index of one of {count} hydros")
    if downstream == own:
        raise field.get("downstream").error("another hydro than itself")
    if field.has("segments") and field.value["segments"] is not None:
        segments = field.get("segments").each(_read_segment)
        if not segments:
            raise field.get("segments").error("at least one segment")
    else:
        segments = [_read_segment(field)]
    name, spill_cost = field.get("name").text(), field.get("spill_cost").number(0.0)
    return Hydro(name, low, high, v0, segments, spill_cost, downstream)


def _read_segment(field: Field) -> Segment:
    """Return the turbine segment described by `qmax` and `productivity` of `field`."""
    return Segment(field.get("qmax").number(0.0), field.get("productivity").number(0.0))


def _read_thermal(field: Field, stages: int) -> Thermal:
    """Return one thermal plant; a single cost holds for all stages."""
    cost = field.get("cost")
    if isinstance(cost.value, list):
        costs = cost.numbers(stages, "one per stage", 0.0)
    else:
        costs = [cost.number(0.0)] * stages
    return Thermal(field.get("name").text(), field.get("capacity").number(0.0), costs)


def _read_probabilities(field: Field, stages: int) -> list[list[float]]:
    """Return the probabilities; each row must sum to one."""
    rows = field.items(stages, "one per stage")
    for row in rows:
        total = sum(row.each(lambda f: f.number(0.0, 1.0)))
        if abs(total - 1.0) > 1e-9:
            raise row.error("numbers that sum to 1", f"a list that sums to {total:.12g}")
    return [row.each(Field.number) for row in rows]


def _read_demand(root: Field, stages: int, openings: list[int]) -> list[list[float]]:
    """Return the demand of every opening, from `demand_outcomes` if the file has it."""
    demand = root.get("demand").numbers(stages, "one per stage", 0.0)
    if not root.has("demand_outcomes") or root.value["demand_outcomes"] is None:
        return [[d] * k for d, k in zip(demand, openings, strict=True)]
    rows = root.get("demand_outcomes").items(stages, "one per stage")
    return [r.numbers(k, "one per opening", 0.0) for r, k in zip(rows, openings, strict=True)]


def _read_inflows(field: Field, openings: list[int], hydros: int) -> list[list[list[float]]]:
    """Return the inflows of every opening; they may be negative (evaporation)."""
    stages = field.items(len(openings), "one per stage")
    rows = [s.items(k, "one per opening") for s, k in zip(stages, openings, strict=True)]
    return [[r.numbers(hydros, "one per hydro") for r in row] for row in rows]


def _read_known(root: Field) -> tuple[float | None, bool]:
    """Return the optimum stated in the file, and whether it is only a lower bound.

    These fields describe the case and are not part of it, so odd values are ignored.
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
