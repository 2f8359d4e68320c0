"""The trainer in one file finds the optima of cases, and prints the same on any number of ranks."""

import importlib.util
import json
import re
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from drawn_cases import drawn_case

from tests.launch.command import cobre

# numba compiles the trainer for each kind of communicator, so these tests are slow.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PROGRAM = Path(__file__).parents[2] / "examples" / "first_sddp.py"
CASES = PROGRAM.parent / "sddp" / "cases"
OPTIMA = {  # published optima, or those of the extensive form, solved by HiGHS
    "sddpjl_first_steps": 8333.333333,
    "fast_hydro_thermal_2": 10.0,
    "fast_hydro_thermal_5": 23.75,
    "sddpjl_joint_noise_4": 45.833333,
    "sddpjl_hydro_valley_det": 5.0,
    "cobre_d02_single_hydro": 2626111.111111,
    "gen_h4_t5_k3": 59591.406217,
}


@pytest.fixture(scope="module")
def program():
    spec = importlib.util.spec_from_file_location("first_sddp", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    sys.modules["first_sddp"] = module  # numba's cache asks for the module by its name
    spec.loader.exec_module(module)
    yield module
    del sys.modules["first_sddp"]


@pytest.fixture
def printed(program, monkeypatch, capsys):
    """Return a function that runs the program on one rank, and returns what the program prints."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["first_sddp.py", *map(str, words)])
        program.main()
        return capsys.readouterr().out

    return run


def lower_bounds(printed):
    return [float(bound) for bound in re.findall(r"lower bound +(\S+)", printed)]


@pytest.mark.parametrize("case", OPTIMA)
def test_the_bound_comes_to_the_optimum(printed, case):
    bounds = lower_bounds(printed(CASES / f"{case}.json", "--iterations", 40))
    assert bounds == sorted(bounds)
    assert bounds[-1] == pytest.approx(OPTIMA[case], rel=1e-6, abs=1e-4)


def test_the_bound_of_a_longer_case_comes_near(printed):
    """The optimum is not known; a simulated policy costs 183,595 with a half-width of 2,535."""
    bounds = lower_bounds(printed(CASES / "gen_h8_t12_k10.json", "--iterations", 30))
    assert bounds == sorted(bounds)
    assert 181_500 < bounds[-1] < 183_595 + 2_535


def test_ranks_of_two_nodes_print_the_same_digits(printed):
    words = "run", "-n", 2, "--backend", "tcp", "--no-prefix", PROGRAM
    done = cobre(*words, within_s=500, COBRE_TEST_PRETEND_NODES="0,1")
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed()


def test_a_case_without_a_solution_is_told(printed, tmp_path):
    case = json.loads((CASES / "fast_hydro_thermal_2.json").read_text())
    case["hydros"][0]["vmin"] = case["hydros"][0]["vmax"] = 1e6  # more water than there is
    path = tmp_path / "dry.json"
    path.write_text(json.dumps(case))
    with pytest.raises(RuntimeError, match="a stage problem has no solution"):
        printed(path)


def test_what_rounding_leaves_of_a_zero_is_no_pivot(program):
    """Column 0 has to rise: column 1 can lift it, but the entry of column 2 is a rounding error."""
    # The rows are a part of a larger array, as in `solve`. So numba has this layout already, and
    # compiles nothing.
    rows = np.zeros((2, 5))[:, :4]
    rows[:] = [1.0, -100.0, -2e-9, 0.0], [0.0, 0.0, 0.0, 1.0]
    x, low, high = np.array([-50.0, 0.0, 0.0, 0.0]), np.zeros(4), np.full(4, np.inf)
    basic = np.array([0, 3])
    program.pivot(rows, x, low, high, np.array([0.0, 1.0, 0.0, 0.0]), basic)
    assert list(basic) == [1, 3]
    assert x == pytest.approx([0.0, 0.5, 0.0, 0.0])


def test_a_large_feasible_case_is_solved(printed, tmp_path):
    """A rounding error once became a pivot, and stage problems of this case seemed infeasible."""
    with mock.patch("drawn_cases.parse_case", lambda data, _: json.loads(data)):
        case = drawn_case(4)
    path = tmp_path / "large.json"
    path.write_text(json.dumps(case))
    bounds = lower_bounds(printed(path, "--iterations", 3, "--passes", 4))
    assert bounds == sorted(bounds)


@pytest.fixture
def changed(program, tmp_path):
    """Return a function that writes a case with other values, also of its hydros and thermals."""

    def write(hydros=(), thermals=(), **fields):
        case = json.loads((CASES / "gen_h4_t5_k3.json").read_text()) | fields
        for part, values in (("hydros", hydros), ("thermals", thermals)):
            case[part] = [each | dict(values) for each in case[part]]
        path = tmp_path / "case.json"
        path.write_text(json.dumps(case))
        return path

    return write


LIMIT = {"of": "outflow", "least": 30.0, "below_cost": 500.0, "above_cost": 0.0}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"discount": [1.0] * 5}, "discount by stage"),
        ({"terminal_value": 7.0}, "terminal_value"),
        ({"lines": []}, "lines"),
        ({"features": ["cascade", "limits"]}, r"features\[1\]\.limits"),
        ({"hydros": {"limits": [LIMIT]}}, r"hydros\[0\]\.limits"),
        ({"hydros": {"water_cost": 0.0}}, r"hydros\[0\]\.water_cost"),
        ({"hydros": {"bus": 1}}, r"hydros\[0\]\.bus"),
        (
            {"hydros": {"segments": [{"qmax": [9.0] * 5}]}},
            r"hydros\[0\]\.segments\[0\]\.qmax by stage",
        ),
        ({"thermals": {"capacity": [50.0] * 5}}, r"thermals\[0\]\.capacity by stage"),
    ],
)
def test_what_the_program_would_leave_out_is_refused_by_name(program, changed, change, named):
    with pytest.raises(ValueError, match=f"^this program has no {named}: train the case by "):
        program.read(changed(**change))


def test_a_refusal_is_a_wrong_argument(printed, changed, capsys):
    with pytest.raises(SystemExit, match="2"):
        printed(changed(hydros={"water_cost": 100.0}))
    assert "case.json: this program has no hydros[0].water_cost" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "optimum"),  # `train.py` gives these optima
    [
        ({"discount": 0.9}, 48519.194639),
        ({"thermals": {"least": 20.0}}, 60811.351581),
        ({"hydros": {"segments": None, "bus": 0, "limits": []}}, OPTIMA["gen_h4_t5_k3"]),
    ],
)
def test_fields_that_a_case_may_leave_out_count(printed, changed, change, optimum):
    bounds = lower_bounds(printed(changed(**change), "--iterations", 40))
    assert bounds[-1] == pytest.approx(optimum, rel=1e-6)
