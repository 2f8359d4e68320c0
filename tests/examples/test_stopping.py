"""Training stops where a stopping rule holds: alike on all ranks, and when done in two parts."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import train
from case.random_case import Shape
from case.read import parse_case
from drawn_cases import case_of
from highs_reference import extensive_form
from stage.problem import build_problem, opening_row
from stage.units import choose_units
from training.finished import Finished
from training.interval import half_width_factor, mean_interval, student_quantile
from training.loop.memory import TRACE
from training.plan import Options, make_plan
from training.run import run_case
from training.sample import DOUBT, doubt_of, paths_of, sample_number
from training.stopping import Stopping, gap_of, is_below_bound, upper_end

from cobre_comm.testing.ranks.outcome import values_of
from tests.forked import ranks
from tests.grid import some

CASES = Path(train.__file__).parent / "cases"
LARGE, GAP = "gen_h8_t12_k10", 0.15


def large():
    return parse_case((CASES / f"{LARGE}.json").read_bytes(), LARGE)


def problem_of(case):
    units = choose_units(case)
    count = sum(len(p) for p in case.probabilities)
    return build_problem(case, units, np.array([opening_row(case, units, k) for k in range(count)]))


# Abramowitz and Stegun, table 26.10; the first two degrees of freedom have a closed form.
TABLE = [
    (0.025, 1, 12.7062047), (0.025, 2, 4.3026527), (0.025, 3, 3.1824463), (0.025, 4, 2.7764451),
    (0.025, 10, 2.2281389), (0.025, 29, 2.0452296), (0.025, 60, 2.0002978),
    (0.025, 120, 1.9799304), (0.05, 1, 6.3137515), (0.05, 7, 1.8945786), (0.005, 5, 4.0321430),
    (0.005, 120, 2.6174211), (0.0005, 3, 12.9239786), (0.0005, 30, 3.6459586),
    (0.0005, 120, 3.3734538),
]  # fmt: skip


@pytest.mark.parametrize(("chance", "degrees", "value"), TABLE)
def test_quantiles_of_student_are_those_of_the_table(chance, degrees, value):
    assert student_quantile(chance, degrees) == pytest.approx(value, abs=1e-6)


def test_quantiles_of_student_pass_from_the_sum_to_the_series():
    for chance in (0.025, 1e-4):
        found = [student_quantile(chance, degrees) for degrees in range(80, 130)]
        assert np.all(np.diff(found) < 0.0)
        assert np.all(np.diff(found, 2) > 0.0)
    assert student_quantile(0.025, 10**6) == pytest.approx(1.9599640, abs=1e-5)


def test_one_number_has_no_interval(comm):
    mean, half_width = mean_interval(comm, np.array([3.0]), 1)
    assert mean == 3.0
    assert math.isnan(half_width)
    assert math.isnan(half_width_factor(1))
    assert mean_interval(comm, np.array([1.0, 3.0]), 2)[1] == pytest.approx(12.7062047)


def test_samples_come_at_growing_intervals_and_share_one_doubt():
    due = [k for k in range(1, 4000) if sample_number(k)]
    assert due[:6] == [8, 12, 18, 27, 41, 62]
    assert [sample_number(k) for k in due] == list(range(1, len(due) + 1))
    assert sum(doubt_of(number) for number in range(1, 10**4)) < DOUBT
    problem = problem_of(large())
    plan = make_plan(problem, Options(trajectories=1))
    assert [paths_of(problem, plan, k) for k in (8, 1000)] == [
        128,
        1270,
    ]  # an iteration solves 122 stage problems


def judged(bound, mean, half_width, gap, paths=128):
    """Return why training stops after an iteration with this bound and this sample of costs."""
    case = large()
    problem = problem_of(case)
    options = Options(gap=gap)
    stopping = Stopping(problem, make_plan(problem, options), options)
    line = np.zeros(1, TRACE)[0]
    line["lower_bound"], line["gain"] = bound, bound
    line["fresh_paths"], line["fresh_mean"], line["fresh_half_width"] = paths, mean, half_width
    stopping.note(line)
    return stopping.reason, line


@pytest.mark.parametrize(
    ("mean", "half_width", "reason"),
    [
        (100.5, 0.4, "gap reached"),
        (100.0, 0.0, "gap reached"),
        (100.5, 0.6, ""),  # the upper end of the interval is too far from the bound
        (99.0, 1.9, ""),  # the mean is near the bound by chance: the interval is wide
        (90.0, 5.0, ""),  # an interval below the bound proves nothing
        (99.9, 0.05, ""),
        (99.7, 0.5, "gap reached"),
    ],
)
def test_the_gap_is_reached_by_the_upper_end_of_a_narrow_interval_about_the_bound(
    mean, half_width, reason
):
    assert judged(100.0, mean, half_width, 0.01)[0] == reason
    assert judged(100.0, mean, half_width, 0.01, paths=0)[0] == ""
    assert judged(100.0, mean, half_width, None)[0] == ""


def test_an_interval_below_the_bound_is_known_from_rounding():
    assert is_below_bound(judged(100.0, 90.0, 5.0, 0.01)[1])
    assert not is_below_bound(judged(100.0, 100.0 - 1e-9, 0.0, 0.01)[1])
    line = judged(100.0, 90.0, 25.0, 0.01)[1]
    assert upper_end(line) == 125.0
    assert gap_of(line) == pytest.approx(0.2)


SKEW = Shape(8, 6, 5, 4)
"""The scenario tree has 1,024 paths, few enough for its extensive form."""


@pytest.mark.slow
@pytest.mark.parametrize("passes", [1, 2, 4, 16])
def test_training_does_not_stop_far_below_the_optimum(comm, passes):
    """Deficits are rare and expensive, so costs are skew, and few passes meet a deficit."""
    case = case_of(SKEW, 4711)
    optimum, gap = extensive_form(case), 0.05
    for seed in range(3):
        options = Options(trajectories=passes, seed=seed, gap=gap)
        training = run_case(case, comm, options)
        assert training.lower_bound[-1] >= (1.0 - gap) * optimum, (seed, training.stopped)
        assert training.lower_bound[-1] <= optimum * (1.0 + 1e-9)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("passes", [1, 2, 4, 16])
def test_a_longer_case_does_not_stop_far_below_its_bound(comm, passes, seed):
    # the bound after 150 iterations of 16 trajectories with all cuts; the optimum is higher
    bound = 5366.18
    options = Options(trajectories=passes, seed=seed, gap=0.01)
    assert run_case(case_of(Shape(8, 6, 12, 10), 4711), comm, options).lower_bound[-1] >= (
        0.99 * bound
    )


def test_a_case_without_chance_stops_where_it_is_optimal(comm):
    case = case_of(Shape(4, 3, 6, 1), 1)
    training = run_case(case, comm, Options(gap=1e-6, iterations=100))
    assert training.stopped == "gap reached"
    assert training.lower_bound[-1] == pytest.approx(extensive_form(case), rel=2e-6)


def stopped_at(comm, **options):
    """Return the results of a training with a gap."""
    training = run_case(large(), comm, Options(trajectories=5, gap=GAP, **options))
    fresh = [training.trace[name].tolist() for name in ("fresh_paths", "fresh_mean")]
    fresh.append(training.trace["fresh_half_width"].tolist())
    return training.stopped, training.lower_bound, training.cuts_sha256, fresh


@pytest.fixture(scope="module")
def alone(comm):
    return stopped_at(comm)


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("backend", "ranks"), some([("tcp:0,0,1,1", 4)], [("shm", 3)]))
def test_ranks_and_nodes_stop_at_the_same_gap_with_the_same_bits(alone, pools, backend, ranks):
    assert alone[0] == "gap reached"
    assert pools.get(backend, ranks).run(stopped_at, timeout_s=300.0) == [alone] * ranks


def test_fresh_paths_change_no_cut(alone, comm):
    number = len(alone[1])
    training = run_case(large(), comm, Options(iterations=number, trajectories=5))
    assert (training.lower_bound, training.cuts_sha256) == alone[1:3]


@pytest.mark.parametrize("stop", [7, 8, 9])
def test_a_training_in_two_parts_stops_as_one(alone, comm, tmp_path, stop):
    path = tmp_path / "half.ckpt"
    stopped_at(comm, iterations=stop, checkpoint=path)
    assert stopped_at(comm, checkpoint=path) == alone
    assert stopped_at(comm, checkpoint=path) == alone, "a finished training stays finished"


def test_a_bound_that_stands_still_stops_the_training(comm):
    options = Options(trajectories=5, stall_iterations=6, stall_tolerance=2e-3)
    training = run_case(large(), comm, options)
    bounds = training.lower_bound
    assert training.stopped == "bound stalled"
    moved = [(bounds[i] - bounds[i - 6]) / bounds[i] for i in range(6, len(bounds))]
    assert moved[-1] <= 2e-3 < min(moved[:-1])


def test_a_time_limit_stops_after_the_iteration_and_the_next_training_goes_on(comm, tmp_path):
    options = {"trajectories": 5, "checkpoint": tmp_path / "limited.ckpt"}
    for iterations in (1, 2):
        done = run_case(large(), comm, Options(time_limit=0.0, **options))
        assert (done.stopped, len(done.trace)) == ("time limit", iterations)
    whole = run_case(large(), comm, Options(trajectories=5, iterations=3))
    went_on = run_case(large(), comm, Options(iterations=3, **options))
    assert went_on.cuts_sha256 == whole.cuts_sha256


def clocks(comm):
    """Train with a limit of half an hour; the last rank's clock says that an hour has passed."""
    finished = Finished()
    finished.seconds()
    finished._begun -= 3600.0 * (comm.rank == comm.size - 1)
    training = run_case(large(), comm, Options(time_limit=1800.0), finished=finished)
    return training.stopped, len(training.trace)


@pytest.mark.timeout(400)
def test_ranks_whose_clocks_differ_stop_together():
    stopped = ranks("shm", 3, clocks, timeout_s=300.0)
    assert values_of(stopped) == [("time limit", 1)] * 3


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--time-limit", "-1"], "--time-limit must not be negative"),
        (["--stall-iterations", "0"], "--stall-iterations must be at least 1"),
        (["--stall-tolerance", "nan"], "--stall-tolerance must not be negative"),
        (["--select-cuts", "--all-cuts"], "ask for one of them"),
    ],
)
def test_wrong_limits_are_reported(capsys, words, text):
    assert train.main([str(CASES / f"{LARGE}.json"), *words]) == 2
    assert text in capsys.readouterr().err


def test_the_gap_is_shown_and_written(tmp_path, capsys):
    out = tmp_path / "result.json"
    words = ["--forward-passes", "1", "--gap", "0.9", "--seed", "2"]
    assert train.main([str(CASES / f"{LARGE}.json"), *words, "--out", str(out)]) == 0
    result = json.loads(out.read_text(), parse_constant=lambda name: pytest.fail(name))
    assert result["stopped"] == "gap reached"
    assert result["upper_bound_half_width"] == [None] * result["iterations"]
    test = result["gap_tests"][-1]
    assert (test["iteration"], test["paths"]) == (result["iterations"], 128)
    assert test["gap"] <= 0.9
    shown = capsys.readouterr().out
    assert f"± {test['half_width']:.4g} by 128 fresh paths after iteration" in shown
    assert f"gap          at most {test['gap']:.3g}" in shown
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]
