"""The trainer in one file finds the optima of reference cases; all numbers of ranks print alike."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

from tests.launch.command import cobre

# numba compiles the trainer for each kind of communicator.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PROGRAM = Path(__file__).parents[2] / "examples" / "first_sddp.py"
CASES = PROGRAM.parent / "sddp" / "cases"
OPTIMA = {  # published, or of the extensive form by HiGHS
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
    sys.modules["first_sddp"] = module  # numba's cache asks for it by name
    spec.loader.exec_module(module)
    yield module
    del sys.modules["first_sddp"]


@pytest.fixture
def printed(program, monkeypatch, capsys):
    """Return a function that runs the program on one rank; it returns what is printed."""

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
    """Its optimum is not known: a simulated policy costs 183,595 with a half-width of 2,535."""
    bounds = lower_bounds(printed(CASES / "gen_h8_t12_k10.json", "--iterations", 30))
    assert bounds == sorted(bounds)
    assert 181_500 < bounds[-1] < 183_595 + 2_535


def test_ranks_of_two_nodes_print_the_same_digits(printed):
    words = "run", "-n", 2, "--backend", "tcp", "--no-prefix", PROGRAM
    done = cobre(*words, within_s=500, COBRE_TCP_PRETEND_NODES="0,1")
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed()


def test_a_case_without_a_solution_is_told(printed, tmp_path):
    case = json.loads((CASES / "fast_hydro_thermal_2.json").read_text())
    case["hydros"][0]["vmin"] = case["hydros"][0]["vmax"] = 1e6  # more than there is water
    path = tmp_path / "dry.json"
    path.write_text(json.dumps(case))
    with pytest.raises(RuntimeError, match="a stage problem has no solution"):
        printed(path)
