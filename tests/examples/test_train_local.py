"""Training on one rank: optima, valid bounds, and everything that the script promises."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import train
from case.random_case import Shape, generate
from case.read import parse_case
from conftest import EXAMPLE
from highs_reference import extensive_form
from stage.problem import build_problem, opening_row
from stage.units import choose_units
from training.plan import Options, make_plan
from training.run import StageInfeasible, run_case, run_training

from tests.command import python

SMALL = [
    "cobre_d02_single_hydro",
    "fast_hydro_thermal_2",
    "fast_hydro_thermal_5",
    "gen_h4_t5_k3",
    "sddpjl_first_steps",
    "sddpjl_hydro_valley_det",
    "sddpjl_joint_noise_4",
]


def train_data(data, comm, **options):
    """Train the case described by `data`."""
    return run_case(parse_case(json.dumps(data).encode(), "case.json"), comm, Options(**options))


@pytest.mark.parametrize("select", [False, True])
@pytest.mark.parametrize("name", SMALL)
def test_reference_optimum_is_reached(cases, comm, name, select):
    training = run_training(cases / f"{name}.json", comm, select=select)
    known = training.case.known
    assert training.lower_bound[-1] == pytest.approx(known, rel=1e-6)
    assert max(training.lower_bound) <= known * (1.0 + 1e-9)
    assert training.stopped == "every path settled"


def test_large_case_reaches_its_bound(cases, comm):
    training = run_training(cases / "gen_h8_t12_k10.json", comm, iterations=40)
    bounds = np.array(training.lower_bound)
    assert bounds[-1] >= 182400.0
    assert np.all(np.diff(bounds) >= -1e-9 * bounds[-1])


SHAPES = [
    Shape(1, 0, 4, 3),
    Shape(1, 2, 5, 3, uneven=True),
    Shape(2, 3, 4, 3, segments=True, fixed_first=True),
    Shape(3, 2, 4, 3, random_demand=True, stage_cost=True),
    Shape(5, 4, 3, 4, segments=True, uneven=True, random_demand=True),
    Shape(8, 3, 3, 3, uneven=True),
    Shape(4, 3, 6, 1),
    Shape(3, 4, 3, 3, limits=True),
    Shape(4, 6, 3, 3, random_demand=True, limits=True, buses=3),
    Shape(5, 4, 3, 3, segments=True, buses=2),
    Shape(4, 3, 4, 3, random_demand=True, stage_cost=True, buses=5),
]


@pytest.mark.parametrize(("seed", "select"), [(1, False), (2, False), (1, True)])
@pytest.mark.parametrize("shape", SHAPES)
def test_generated_optimum_is_that_of_the_extensive_form(comm, shape, seed, select):
    data = generate(shape, seed)
    optimum = extensive_form(parse_case(json.dumps(data).encode(), "case.json"))
    training = train_data(data, comm, select=select)
    assert training.lower_bound[-1] == pytest.approx(optimum, rel=1e-6)
    assert max(training.lower_bound) <= optimum * (1.0 + 1e-9)


def test_numbers_by_stage_discount_and_lack_of_hydros(comm):
    data = generate(Shape(3, 4, 4, 3, limits=True, buses=2), 6)
    data["discount"] = [1.0, 0.8, 0.9, 0.5]
    season = np.array([1.0, 0.7, 1.2, 0.9])
    for plant in data["thermals"]:
        plant["capacity"] = (plant["capacity"] * season).tolist()
        plant["least"] = 0.0
    for line in data["lines"]:
        line["reverse"] = (line["reverse"] * season[::-1]).tolist()
    data["hydros"][1]["qmax"] = (data["hydros"][1]["qmax"] * season).tolist()
    data["buses"][1]["deficit"][0]["depth"] = (50.0 * season).tolist()
    for hydros in (data["hydros"], []):
        data["hydros"] = hydros
        data["inflows"] = [[row[: len(hydros)] for row in stage] for stage in data["inflows"]]
        optimum = extensive_form(parse_case(json.dumps(data).encode(), "case.json"))
        training = train_data(data, comm)
        assert training.lower_bound[-1] == pytest.approx(optimum, rel=1e-9)


@pytest.mark.parametrize("water", [1e-3, 1e5])
@pytest.mark.parametrize("money", [1e-3, 1e4])
def test_units_of_the_data_do_not_matter(comm, water, money):
    data = generate(Shape(3, 2, 3, 3), 4)
    for hydro in data["hydros"]:
        for name in ("vmin", "vmax", "v0", "qmax"):
            hydro[name] *= water
        hydro["productivity"] /= water
        hydro["spill_cost"] *= money / water
    data["inflows"] = (np.array(data["inflows"]) * water).tolist()
    for plant in data["thermals"]:
        plant["cost"] *= money
    data["deficit_cost"] *= money
    optimum = train_data(generate(Shape(3, 2, 3, 3), 4), comm).lower_bound[-1]
    assert train_data(data, comm).lower_bound[-1] == pytest.approx(optimum * money, rel=1e-7)


def test_a_run_repeats_bit_for_bit_and_depends_on_its_seed(cases, comm):
    path = cases / "gen_h8_t12_k10.json"
    one = run_training(path, comm, iterations=3, seed=1)
    two = run_training(path, comm, iterations=3, seed=1)
    other = run_training(path, comm, iterations=3, seed=2)
    assert one.lower_bound == two.lower_bound
    assert one.cuts_sha256 == two.cuts_sha256
    assert one.cuts_sha256 != other.cuts_sha256


def test_the_cut_pool_grows_past_its_first_allocation(cases, comm):
    training = run_training(cases / "gen_h8_t12_k10.json", comm, iterations=8, trajectories=64)
    assert training.trace["cuts"][-1] > 256 * 11


def test_water_that_cannot_be_kept_is_named(comm):
    data = generate(Shape(2, 1, 3, 2), 3)
    data["hydros"][0]["v0"] = data["hydros"][0]["vmin"]
    data["inflows"][0][1][0] = -50.0
    with pytest.raises(StageInfeasible, match="stage 0, opening 1 has no feasible dispatch"):
        train_data(data, comm)


def test_zero_iterations_and_zero_probabilities(comm):
    data = generate(Shape(2, 1, 3, 3), 3)
    assert train_data(data, comm, iterations=0).lower_bound == []
    data["probabilities"][1] = [0.5, 0.0, 0.5]
    optimum = extensive_form(parse_case(json.dumps(data).encode(), "case.json"))
    assert train_data(data, comm).lower_bound[-1] == pytest.approx(optimum, rel=1e-6)


def test_default_plan_walks_small_trees():
    data = generate(Shape(1, 1, 3, 3), 1)
    case = parse_case(json.dumps(data).encode(), "case.json")
    units = choose_units(case)
    noise = np.array([opening_row(case, units, k) for k in range(9)])
    plan = make_plan(build_problem(case, units, noise), Options())
    assert (plan.paths, plan.trajectories, plan.mixed) == (27, 27, 0)


def test_script_trains_and_writes(cases, tmp_path):
    out, plot = tmp_path / "result.json", tmp_path / "convergence.png"
    case = cases / "fast_hydro_thermal_5.json"
    words = EXAMPLE / "train.py", case, "--out", out, "--plot", plot
    done = python(*words, cwd=tmp_path, within_s=170)
    assert "known optimum" in done.stdout
    assert "\x1b" not in done.stdout
    result = json.loads(out.read_text())
    assert float.fromhex(result["lower_bound"][-1]) == pytest.approx(23.75, rel=1e-6)
    assert list(result)[:2] == ["known_optimum", "relative_difference"]
    assert result["known_optimum"] == 23.75
    assert abs(result["relative_difference"]) < 1e-6
    assert len(result["cuts_sha256"]) == 64
    assert result["select_cuts"] is False
    assert plot.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["missing.json"], "missing.json"),
        ([], "case"),
        (["CASE", "--iterations", "-1"], "--iterations"),
        (["CASE", "--forward-passes", "0"], "--forward-passes"),
        (["CASE", "--gap", "nan"], "--gap"),
        (["CASE", "--out", "no/such/folder/r.json"], "cannot write --out"),
        (["CASE", "--seed", "x"], "--seed"),
    ],
)
def test_wrong_arguments_are_reported_before_training(cases, capsys, words, text):
    case = str(cases / "fast_hydro_thermal_2.json")
    assert train.main([case if w == "CASE" else w for w in words]) == 2
    out, errors = capsys.readouterr()
    assert text in errors
    assert "Traceback" not in errors
    assert out == ""


def test_a_malformed_case_is_one_line(tmp_path, capsys):
    data = generate(Shape(2, 1, 2, 2), 1)
    data["hydros"][1]["vmax"] = -1
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(data))
    assert train.main([str(path)]) == 2
    _, errors = capsys.readouterr()
    assert errors.count("\n") == 1
    assert "bad.json: hydros[1].vmax: found -1" in errors


def test_interrupt_ends_with_130(cases):
    command = [sys.executable, str(EXAMPLE / "train.py"), str(cases / "gen_h8_t12_k10.json")]
    environment = dict(os.environ, PYTHONUNBUFFERED="1")
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.split()[:1] == ["3"]:
            break
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors.strip() == "interrupted"
