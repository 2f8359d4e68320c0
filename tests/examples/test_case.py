"""A valid case is read right, and a mistake in a case is named."""

import copy
import json
import pickle

import pytest
from case.fields import CaseError
from case.random_case import Shape, generate
from case.read import parse_case
from hypothesis import given, settings
from hypothesis import strategies as st


def parse(data):
    """Return the case described by `data`."""
    return parse_case(json.dumps(data).encode(), "case.json")


def valid():
    """Return a case with every optional part."""
    return generate(Shape(3, 2, 3, 2, segments=True, random_demand=True, stage_cost=True), 1)


def replace(data, path, value):
    """Return a copy of `data` with `value` at `path`."""
    data = copy.deepcopy(data)
    parent = data
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = value
    return data


def test_all_reference_cases_are_read(cases):
    paths = sorted(cases.glob("*.json"))
    assert len(paths) == 8
    for path in paths:
        case = parse_case(path.read_bytes(), path.name)
        assert case.known is not None
        assert [len(p) for p in case.probabilities] == [len(d) for d in case.demand]


def test_abbreviations_are_spelled_out(cases):
    path = cases / "sddpjl_hydro_valley_det.json"
    case = parse_case(path.read_bytes(), path.name)
    assert case.thermals[0].cost == [1.0, 2.0, 3.0]
    assert [s.productivity for s in case.hydros[0].segments] == [1.1, 1.0, 0.5]
    assert case.hydros[0].downstream == 1
    assert case.known == 5.0


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (["stages"], 0, "stages"),
        (["stages"], 3.0, "stages"),
        (["stages"], True, "stages"),
        (["discount"], 1.1, "discount"),
        (["discount"], [1.0], "discount"),
        (["terminal_value"], 1, "terminal_value"),
        (["features"], ["teleport"], "features[0]"),
        (["hydros", 2, "vmax"], -1, "hydros[2].vmax"),
        (["hydros", 2, "vmax"], 0.0, "hydros[2].vmax"),
        (["hydros", 1, "v0"], 1e9, "hydros[1].v0"),
        (["hydros", 1, "v0"], "full", "hydros[1].v0"),
        (["hydros", 0, "downstream"], 3, "hydros[0].downstream"),
        (["hydros", 0, "downstream"], 0, "hydros[0].downstream"),
        (["hydros", 0, "downstream"], -2, "hydros[0].downstream"),
        (["hydros", 0, "segments"], [], "hydros[0].segments"),
        (["hydros", 0, "segments", 1, "qmax"], -1, "hydros[0].segments[1].qmax"),
        (["thermals", 1, "capacity"], -5, "thermals[1].capacity"),
        (["thermals", 1, "cost"], [1, 2], "thermals[1].cost"),
        (["thermals", 0, "cost"], -1, "thermals[0].cost"),
        (["deficit_cost"], float("nan"), "deficit_cost"),
        (["deficit_cost"], None, "deficit_cost"),
        (["demand"], [1, 2], "demand"),
        (["demand", 1], float("inf"), "demand[1]"),
        (["demand_outcomes", 2], [1.0], "demand_outcomes[2]"),
        (["inflows", 1, 0], [1.0], "inflows[1][0]"),
        (["inflows", 1, 0, 2], [], "inflows[1][0][2]"),
        (["inflows", 0], [], "inflows[0]"),
        (["probabilities", 1], [0.5, 0.6], "probabilities[1]"),
        (["probabilities", 1], [0.5, 0.5 + 1e-8], "probabilities[1]"),
        (["probabilities", 1], [1.5, -0.5], "probabilities[1][0]"),
        (["probabilities"], [[1.0]], "probabilities"),
    ],
)
def test_an_error_names_the_field(path, value, named):
    with pytest.raises(CaseError) as caught:
        parse(replace(valid(), path, value))
    assert caught.value.path == named
    assert caught.value.file == "case.json"
    assert named in str(caught.value)


def test_a_circle_of_reservoirs_is_found():
    data = replace(valid(), ["hydros", 0, "downstream"], 1)
    data["hydros"][1]["downstream"] = 2
    data["hydros"][2]["downstream"] = 0
    with pytest.raises(CaseError, match=r"hydros\[0\].downstream"):
        parse(data)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"3", b"\xff\xfe", b"null", b"[" * 100_000])
def test_a_file_that_holds_no_object_is_an_error(data):
    with pytest.raises(CaseError):
        parse_case(data, "case.json")


def test_every_field_is_required():
    optional = {"description", "published", "demand_outcomes"}
    for name in set(valid()) - optional:
        data = valid()
        del data[name]
        with pytest.raises(CaseError) as caught:
            parse(data)
        assert caught.value.path == name
    for name in ("vmin", "vmax", "v0", "spill_cost", "downstream", "name"):
        data = valid()
        del data["hydros"][1][name]
        with pytest.raises(CaseError) as caught:
            parse(data)
        assert caught.value.path == f"hydros[1].{name}"


def test_the_error_survives_pickling():
    error = CaseError("f", "p", "x", "y")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


PATHS = [
    ["stages"],
    ["hydros"],
    ["hydros", 0],
    ["hydros", 1, "vmax"],
    ["hydros", 1, "downstream"],
    ["thermals"],
    ["thermals", 0, "cost"],
    ["demand"],
    ["demand_outcomes"],
    ["inflows", 1],
    ["probabilities", 0],
    ["features"],
    ["deficit_cost"],
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=5), x, max_size=3),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(PATHS), JSON)
def test_any_value_of_a_field_is_read_or_named(path, value):
    named = ""
    try:
        parse(replace(valid(), path, value))
    except CaseError as error:
        named = error.path
    # A wrong number of stages or hydros may be valid in itself. Then the error names another field,
    # which does not fit that number.
    known = (str(path[0]), "inflows", "demand", "probabilities", "thermals", "hydros")
    assert named == "" or named.startswith(known)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_a_case_error(data):
    with pytest.raises(CaseError):
        parse_case(data, "case.json")
