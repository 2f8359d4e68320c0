"""Cases as folders of Cobre's."""

import json
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from case.random_case import Shape, generate
from case.read import parse_case
from cobre.write import HOURS, NotInCobre, write_case

SHAPE = Shape(hydros=4, thermals=3, stages=14, openings=5)


def case_of(shape):
    return parse_case(json.dumps(generate(shape, 3)).encode(), "case.json")


def test_openings_and_costs_are_those_of_the_case(tmp_path):
    case = case_of(SHAPE)
    write_case(case, tmp_path, forward_passes=8, iterations=3, selection="dynamic")
    openings = pq.read_table(tmp_path / "scenarios" / "noise_openings.parquet").to_pydict()
    names = "stage_id", "opening_index", "entity_index"
    for t, k, h, value in zip(*(openings[n] for n in names), openings["value"], strict=True):
        assert value == case.inflows[t][k][h]
    assert len(openings["value"]) == 14 * 5 * 4
    thermals = json.loads((tmp_path / "system" / "thermals.json").read_text())["thermals"]
    assert [t["cost_per_mwh"] * HOURS for t in thermals] == pytest.approx(
        [plant.cost[0] for plant in case.thermals]
    )
    stages = json.loads((tmp_path / "stages.json").read_text())["stages"]
    assert stages[11]["end_date"] == stages[12]["start_date"] == "2001-01-01"
    training = json.loads((tmp_path / "config.json").read_text())["training"]
    assert training["cut_selection"] == {"selection": {"method": "dynamic"}}


@pytest.mark.parametrize(
    ("feature", "told"),
    [
        ("segments", "turbines with several segments"),
        ("random_demand", "demand that differs between openings"),
        ("stage_cost", "thermal costs that differ between stages"),
        ("uneven", "openings that differ in probability"),
    ],
)
def test_a_feature_that_is_not_written_is_told(tmp_path, feature, told):
    case = case_of(replace(SHAPE, **{feature: True}))
    with pytest.raises(NotInCobre, match=told):
        write_case(case, tmp_path, forward_passes=8, iterations=3)
    assert not list(tmp_path.iterdir())
