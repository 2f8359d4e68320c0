"""Read the parts of a system from JSON: buses, reservoirs, thermal plants and lines."""

import math

from case.data import Bus, Hydro, Limit, Line, Segment, Step, Thermal
from case.fields import Field


def read_buses(root: Field, stages: int) -> list[Bus]:
    """Return the buses; if there are none, one bus with a deficit at the price `deficit_cost`."""
    if not root.has("buses"):
        price = root.get("deficit_cost").number(0.0)
        return [Bus("all", [Step(price, [math.inf] * stages)], None)]
    buses = root.get("buses").each(lambda f: _read_bus(f, stages))
    if not buses:
        raise root.get("buses").error("at least one bus")
    return buses


def _read_bus(field: Field, stages: int) -> Bus:
    """Return one bus; the last step of its deficit must be unlimited."""
    steps = field.get("deficit").each(lambda f: _read_step(f, stages))
    if not steps or steps[-1].depth[0] < math.inf:
        raise field.get("deficit").error("a last step without depth")
    return Bus(field.get("name").text(), steps, _read_price(field, "excess_cost"))


def _read_step(field: Field, stages: int) -> Step:
    """Return a step of a deficit."""
    return Step(field.get("cost").number(0.0), _read_most(field, "depth", stages))


def _read_price(field: Field, name: str) -> float | None:
    """Return the price `name`, or None if there is none."""
    return field.get(name).number(0.0) if field.has(name) else None


def _read_most(field: Field, name: str, stages: int) -> list[float]:
    """Return the bounds `name` [T], infinite if there are none."""
    return field.get(name).per_stage(stages, 0.0) if field.has(name) else [math.inf] * stages


def _read_index(field: Field, name: str, count: int, what: str) -> int:
    """Return the index `name` of one of `count` things; an index that is left out is 0."""
    if not field.has(name):
        return 0
    index = field.get(name).integer(0)
    if index >= count:
        raise field.get(name).error(f"the index of one of {count} {what}")
    return index


def read_hydros(field: Field, stages: int, buses: int) -> list[Hydro]:
    """Return the reservoirs; their water must not flow in a circle."""
    count = len(field.items())
    hydros = field.each(lambda f: _read_hydro(f, count, stages, buses))
    for h in range(count):
        receiver, steps = h, 0
        while hydros[receiver].downstream >= 0 and steps <= count:
            receiver, steps = hydros[receiver].downstream, steps + 1
        if steps > count:
            raise field.items()[h].get("downstream").error("a way to the sea, not a circle")
    return hydros


def _read_hydro(field: Field, count: int, stages: int, buses: int) -> Hydro:
    """Return one of `count` reservoirs."""
    low = field.get("vmin").number(0.0)
    high = field.get("vmax").number(0.0)
    if high < low:
        raise field.get("vmax").error(f"at least vmin, {low:g}")
    downstream = field.get("downstream").integer(-1)
    own = int(field.path[field.path.rindex("[") + 1 : -1])
    if downstream >= count:
        raise field.get("downstream").error(f"-1 or the index of one of {count} hydros")
    if downstream == own:
        raise field.get("downstream").error("another hydro than itself")
    return Hydro(
        name=field.get("name").text(),
        vmin=low,
        vmax=high,
        v0=field.get("v0").number(low, high),
        segments=_read_segments(field, stages, buses),
        spill_cost=field.get("spill_cost").number(0.0),
        downstream=downstream,
        water_cost=_read_price(field, "water_cost"),
        limits=_read_limits(field, stages),
    )


def _read_segments(field: Field, stages: int, buses: int) -> list[Segment]:
    """Return the segments of a turbine; if there are none, the segment that the hydro describes."""
    bus = _read_index(field, "bus", buses, "buses")
    if not field.has("segments") or field.value["segments"] is None:
        return [_read_segment(field, stages, buses, bus)]
    segments = field.get("segments").each(lambda f: _read_segment(f, stages, buses, bus))
    if not segments:
        raise field.get("segments").error("at least one segment")
    return segments


def _read_segment(field: Field, stages: int, buses: int, bus: int) -> Segment:
    """Return the segment that `field` describes; it feeds `bus` unless the field has another."""
    if field.has("bus"):
        bus = _read_index(field, "bus", buses, "buses")
    most = field.get("qmax").per_stage(stages, 0.0)
    return Segment(most, field.get("productivity").number(0.0), bus)


def _read_limits(field: Field, stages: int) -> list[Limit]:
    """Return the limits of a hydro's outflow, of which there may be none."""
    return field.get("limits").each(lambda f: _read_limit(f, stages)) if field.has("limits") else []


def _read_limit(field: Field, stages: int) -> Limit:
    """Return one limit; its upper bound must not be below its lower bound."""
    kind = field.get("of").text()
    if kind not in ("outflow", "turbined"):
        raise field.get("of").error('"outflow" or "turbined"')
    least = field.get("least").per_stage(stages, 0.0) if field.has("least") else [0.0] * stages
    most = _read_most(field, "most", stages)
    if any(low > high for low, high in zip(least, most, strict=True)):
        raise field.get("most").error("in no stage less than least")
    below, above = (field.get(name).number(0.0) for name in ("below_cost", "above_cost"))
    return Limit(kind == "outflow", least, most, below, above)


def read_thermal(field: Field, stages: int, buses: int) -> Thermal:
    """Return one thermal plant."""
    capacity = field.get("capacity").per_stage(stages, 0.0)
    least = [0.0] * stages
    if field.has("least"):
        least = field.get("least").per_stage(stages, 0.0)
        if any(low > high for low, high in zip(least, capacity, strict=True)):
            raise field.get("least").error("in no stage more than the capacity")
    return Thermal(
        name=field.get("name").text(),
        bus=_read_index(field, "bus", buses, "buses"),
        least=least,
        capacity=capacity,
        cost=field.get("cost").per_stage(stages, 0.0),
    )


def read_line(field: Field, stages: int, buses: int) -> Line:
    """Return one line, which must join two buses."""
    ends = []
    for name in ("source", "target"):
        field.get(name)
        ends.append(_read_index(field, name, buses, "buses"))
    if ends[0] == ends[1]:
        raise field.get("target").error("another bus than the source")
    return Line(
        name=field.get("name").text(),
        source=ends[0],
        target=ends[1],
        capacity=field.get("capacity").per_stage(stages, 0.0),
        reverse=field.get("reverse").per_stage(stages, 0.0),
        cost=field.get("cost").number(0.0),
    )
