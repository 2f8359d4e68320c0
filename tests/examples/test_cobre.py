"""Our cases can be written as folders of Cobre's, and read from these folders again."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from case.random_case import Shape, generate
from case.read import parse_case
from cobre.read import read_folder
from cobre.write import HOURS, NotInCobre, write_case
from cobre_variants import BOUNDS
from training.plan import Options
from training.run import run_case

SHAPE = Shape(hydros=4, thermals=3, stages=14, openings=5)


def test_openings_and_costs_are_those_of_the_case(tmp_path):
    case = parse(generate(SHAPE, 3))
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


def full_case():
    """Return a case of buses and lines with every feature that can be written to a folder."""
    shape = Shape(
        hydros=3, thermals=3, stages=4, openings=3, random_demand=True, stage_cost=True,
        limits=True, buses=3,
    )  # fmt: skip
    content = generate(shape, 3)
    content["discount"] = [1.0, 0.95, 0.9, 0.7]
    for hydro in content["hydros"]:
        hydro["spill_cost"] = 1.0
        hydro["water_cost"] = 2000.0
    upper = content["hydros"][0]
    upper["qmax"] = [upper["qmax"] * factor for factor in (1.0, 0.8, 0.9, 0.7)]
    upper["limits"][1]["least"] = [0.0, 9.0, 4.0, 2.0]
    content["thermals"][1]["least"] = [0.0, 7.0, 0.0, 0.0]
    content["lines"][0]["capacity"] = [20.0, 30.0, 25.0, 0.0]
    return parse(content)


def parse(content):
    return parse_case(json.dumps(content).encode(), "case.json")


def test_a_written_case_is_read_back(tmp_path, comm):
    case = full_case()
    write_case(case, tmp_path / "full", forward_passes=4, iterations=60)
    back = parse(read_folder(tmp_path / "full"))
    assert back.inflows == [pytest.approx(np.array(rows)) for rows in case.inflows]
    energy = [np.array(rows) * HOURS for rows in case.demand]
    assert back.demand == [pytest.approx(rows) for rows in energy]
    assert back.discount == pytest.approx(case.discount)
    bound, ours = (
        run_case(c, comm, Options(60, 4, 0, None, None, 10)).lower_bound[-1] for c in (back, case)
    )
    assert bound == pytest.approx(ours, rel=1e-9)
    # Cobre 0.18 gives this bound for the same folder
    assert bound == pytest.approx(BOUNDS["written"], rel=1e-9)


def change(**fields):
    """Return a change of the first hydro of a case."""
    return lambda content: content["hydros"][0].update(fields)


SEGMENTS = [{"qmax": 20.0, "productivity": 1.0}, {"qmax": 9.0, "productivity": 0.5}]
PRICES = {"below_cost": 3.0, "above_cost": 4.0}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (change(segments=SEGMENTS), "turbines with several segments"),
        (change(water_cost=9.0), "water that some hydros can buy"),
        (change(limits=[{"of": "turbined", "most": 5.0, **PRICES}]), "most turbined water"),
        (
            change(limits=[{"of": "outflow", "least": least, **PRICES} for least in (1.0, 2.0)]),
            "several limits of one kind",
        ),
        (lambda c: c.update(discount=[1.0] * 13 + [1.1]), "costs that count more in a later stage"),
        (
            lambda c: c.update(discount=[0.5] * 14),
            "costs of the first stage that are discounted",
        ),
        (
            lambda c: c["probabilities"].__setitem__(3, [0.4, 0.3, 0.1, 0.1, 0.1]),
            "openings that differ in probability",
        ),
    ],
)
def test_a_feature_that_is_not_written_is_told(tmp_path, changed, told):
    content = generate(SHAPE, 3)
    changed(content)
    with pytest.raises(NotInCobre) as raised:
        write_case(parse(content), tmp_path, forward_passes=8, iterations=3)
    sentence = f"{content['name']} is not written for Cobre, because it has {told}"
    assert str(raised.value) == sentence
    assert not list(tmp_path.iterdir())
