"""Simulations follow the policy: balances and statistics hold, alike on any number of ranks."""

import csv
import itertools
import json

import numpy as np
import pytest
import simulate
from case.random_case import Shape, generate
from case.read import parse_case
from conftest import EXAMPLE
from output.fan import save_fans
from simulation.evaluate import evaluate
from simulation.scenarios import Drawn, Given, draw_block
from simulation.statistics import cost_statistics
from training.plan import Options
from training.run import run_case, run_training
from training.share import shared_setting

from tests.command import python

SMALL, LARGE = "gen_h4_t5_k3", "gen_h8_t12_k10"
SELECTED = "selected"  # the small case, trained with selection of cuts


@pytest.fixture(scope="module")
def policies(cases, comm, tmp_path_factory):
    """Return a folder with three policies of two cases; those of the small case are optimal."""
    folder = tmp_path_factory.mktemp("policies")
    options = {"iterations": 20, "checkpoint": folder / LARGE}
    run_training(cases / f"{LARGE}.json", comm, **options)
    for name, select in ((SMALL, False), (SELECTED, True)):
        run_training(cases / f"{SMALL}.json", comm, checkpoint=folder / name, select=select)
    return folder


def evaluated(cases, comm, policies, name, scenarios, policy=None):
    case = parse_case((cases / f"{name}.json").read_bytes(), name)
    with shared_setting(comm, case) as setting:
        return evaluate(setting, policies / (policy or name), scenarios, 0.9)


@pytest.mark.parametrize("policy", [SMALL, SELECTED])
def test_an_optimal_policy_costs_the_optimum_over_all_paths(cases, comm, policies, policy):
    case = parse_case((cases / f"{SMALL}.json").read_bytes(), SMALL)
    paths = list(itertools.product(*(range(len(p)) for p in case.probabilities)))
    weights = [np.prod([case.probabilities[t][k] for t, k in enumerate(p)]) for p in paths]
    assert np.ptp(weights) < 1e-12, "the paths of this case are equally likely"
    inflows = np.array([[case.inflows[t][k] for t, k in enumerate(p)] for p in paths])
    demand = np.array([[case.demand[t][k] for t, k in enumerate(p)] for p in paths])
    done = evaluated(cases, comm, policies, SMALL, Given(inflows, demand, "all"), policy)
    assert done.statistics.mean == pytest.approx(case.known, rel=1e-6)


def test_energy_is_balanced_at_every_bus(comm, tmp_path):
    """Exchanges are part of the balance, and no price is above the last price of a deficit."""
    data = generate(Shape(4, 5, 4, 3, random_demand=True, buses=3), 5)
    data["demand_outcomes"] = [(2.0 * np.array(rows)).tolist() for rows in data["demand_outcomes"]]
    case = parse_case(json.dumps(data).encode(), "case.json")
    options = Options(iterations=10, checkpoint=tmp_path / "policy")
    run_case(case, comm, options)
    with shared_setting(comm, case) as setting:
        done = evaluate(setting, tmp_path / "policy", Drawn(40, 3), 0.9)
        noise = np.zeros((40, case.stages, 4 + 3))
        draw_block(setting.problem, 3, 0, noise)
        demand = noise[:, :, 4:] * setting.units.energy
    table = done.table
    for b, bus in enumerate(case.buses):
        energy = table[f"deficit_{bus.name}"].copy()
        for kind, plants in (("hydro", data["hydros"]), ("thermal", data["thermals"])):
            for plant in plants:
                if plant["bus"] == b:
                    energy += table[f"generation_{kind}_{plant['name']}"]
        for line in case.lines:
            sign = (line.target == b) - (line.source == b)
            energy += sign * table[f"exchange_{line.name}"]
        excess = energy - demand[:, :, b]
        assert excess.min() >= -1e-9 * demand.max()
        paid = excess > 1e-6 * demand.max()
        price = table[f"spot_price_{bus.name}"]
        assert price.max() <= bus.deficit[-1].cost * (1.0 + 1e-9)
        assert price[paid] == pytest.approx(-bus.excess_cost)
    assert sum(a for n, a in table.items() if n.startswith("deficit")).max() > 0.0
    save_fans(done, tmp_path / "fans.svg")
    assert "median at B2" in (tmp_path / "fans.svg").read_text()


def test_water_and_energy_are_balanced_and_priced(cases, comm, policies):
    case = parse_case((cases / f"{LARGE}.json").read_bytes(), LARGE)
    rng = np.random.default_rng(1)
    shape = 30, case.stages, len(case.hydros)
    inflows, demand = rng.uniform(0.0, 30.0, shape), rng.uniform(0.0, 900.0, (*shape[:2], 1))
    done = evaluated(cases, comm, policies, LARGE, Given(inflows, demand, "random"))
    table = done.table
    produced = table["deficit"] + sum(a for n, a in table.items() if n.startswith("generation_"))
    assert produced == pytest.approx(demand[:, :, 0], rel=1e-9)
    thermal = sum(
        table[f"generation_thermal_{plant.name}"] * np.array(plant.cost) for plant in case.thermals
    )
    spilt = sum(table[f"spill_{h.name}"] * h.spill_cost for h in case.hydros)
    price = case.buses[0].deficit[0].cost
    paid = thermal + spilt + table["deficit"] * price
    assert table["cost"] == pytest.approx(paid, rel=1e-9)
    assert done.costs == pytest.approx(table["cost"].sum(axis=1), rel=1e-12)
    short = table["deficit"] > 1e-6 * demand.max()
    assert short.any()
    assert not short.all()
    assert table["spot_price"][short] == pytest.approx(price)
    assert table["spot_price"].max() <= price * (1.0 + 1e-9)
    for h, hydro in enumerate(case.hydros):
        storage = table[f"storage_{hydro.name}"]
        assert storage.min() >= hydro.vmin * (1.0 - 1e-9)
        assert storage.max() <= hydro.vmax * (1.0 + 1e-9)
        if all(other.downstream != h for other in case.hydros) and len(hydro.segments) == 1:
            before = np.column_stack([np.full(len(storage), hydro.v0), storage[:, :-1]])
            turbined = table[f"generation_hydro_{hydro.name}"] / hydro.segments[0].productivity
            left = before + inflows[:, :, h] - turbined - table[f"spill_{hydro.name}"]
            assert storage == pytest.approx(left, abs=1e-6 * hydro.vmax)


def test_statistics_are_those_of_the_costs(comm):
    costs = np.random.default_rng(2).lognormal(3.0, 1.0, 1000)
    found = cost_statistics(comm, costs, costs, 0.95)
    worst = np.sort(costs)[-50:]
    assert found.mean == pytest.approx(costs.mean(), rel=1e-14)
    # the 97.5 % quantile of Student's t distribution with 999 degrees of freedom
    student = 1.9623415
    assert found.half_width == pytest.approx(student * costs.std(ddof=1) / 1000**0.5, rel=1e-7)
    assert found.cvar == pytest.approx(worst.mean(), rel=1e-12)
    assert found.value_at_risk == np.sort(costs)[949]
    assert found.quantiles["0.5"] == np.median(costs)
    assert cost_statistics(comm, costs, costs, 0.0).cvar == pytest.approx(costs.mean(), rel=1e-12)


def test_one_scenario_has_no_half_width_and_two_have_a_wide_one(
    cases, comm, policies, tmp_path, capsys
):
    assert cost_statistics(comm, np.array([2.0, 4.0]), np.array([2.0, 4.0]), 0.9).half_width == (
        pytest.approx(12.7062047)
    )
    out = tmp_path / "one.json"
    words = [str(cases / f"{LARGE}.json"), str(policies / LARGE), "--scenarios", "1"]
    assert simulate.main([*words, "--out", str(out)]) == 0
    result = json.loads(out.read_text())
    assert result["half_width"] is result["decimal"]["half_width"] is None
    mean = f"mean cost    {result['decimal']['mean']:.10g}"
    assert mean in capsys.readouterr().out.splitlines()


def test_drawn_scenarios_depend_on_their_seed_and_not_on_how_many_there_are(cases, comm, policies):
    few, many, other = (
        evaluated(cases, comm, policies, LARGE, Drawn(count, seed)).costs
        for count, seed in ((10, 0), (30, 0), (30, 1))
    )
    assert few.tolist() == many[:10].tolist()
    assert many.tolist() != other.tolist()


def run_script(ranks, policies, folder, *more):
    """Run `simulate.py` on some ranks; return its result and the text of its table."""
    out, table = folder / f"{ranks}.json", folder / f"{ranks}.csv"
    backend = "local" if ranks == 1 else "shm"
    words = ["-m", "cobre_comm", "run", "-n", str(ranks), "--backend", backend]
    words += [EXAMPLE / "simulate.py", EXAMPLE / "cases" / f"{LARGE}.json", policies / LARGE]
    words += ["--scenarios", "101", "--out", out, "--table", table, *more]
    python(*words, within_s=200)
    result = json.loads(out.read_text())
    assert (result.pop("backend"), result.pop("ranks")) == (backend, ranks)
    return {**result, "table": table.read_text()}


@pytest.mark.slow
def test_any_number_of_ranks_gives_the_same_digits(policies, tmp_path):
    plot = tmp_path / "fans.png"
    alone = run_script(1, policies, tmp_path, "--plot", str(plot))
    assert run_script(3, policies, tmp_path) == alone
    assert float.fromhex(alone["mean"]) == alone["decimal"]["mean"]
    rows = list(csv.DictReader(alone["table"].splitlines()))
    assert len(rows) == 101 * 12
    assert {"scenario", "stage", "spot_price", "storage_H0", "generation_thermal_T0"} <= set(
        rows[0]
    )
    assert plot.read_bytes()[:4] == b"\x89PNG"


def test_a_table_in_parquet(cases, policies, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not required")
    path, words = tmp_path / "t.parquet", ["--quiet", "--scenarios", "3"]
    case = str(cases / f"{SMALL}.json")
    assert simulate.main([case, str(policies / SMALL), *words, "--table", str(path)]) == 0
    assert parquet.read_table(path).num_rows == 3 * 5


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["CASE", "no.ckpt"], "there is no checkpoint no.ckpt; train.py --checkpoint makes one"),
        (
            ["CASE", "OTHER"],
            "with other data than gen_h4_g3_t5_k3_s11 has now; go on as it was made",
        ),
        (["CASE", "CASE"], "is no checkpoint of this program"),
        (["CASE", "POLICY", "--table", "t.xls"], "must end in .csv or .parquet"),
        (["CASE", "POLICY", "--plot", "p.txt"], "must end in .png, .pdf or .svg"),
        (["CASE", "POLICY", "--out", "no/such/r.json"], "cannot write --out"),
        (["CASE", "POLICY", "--tail", "1"], "--tail must be at least 0 and below 1"),
        (["CASE", "POLICY", "--scenarios", "0"], "--scenarios must be at least 1"),
        (["CASE", "POLICY", "--given", "gone.json"], "cannot read gone.json"),
        (["CASE", "POLICY", "--given", "GIVEN"], "g.json: inflows[1][4]: found a list of 3"),
    ],
)
def test_wrong_input_is_reported_in_one_sentence(cases, policies, tmp_path, capsys, words, text):
    given = tmp_path / "g.json"
    rows = np.ones((2, 5, 4)).tolist()
    del rows[1][4][0]
    given.write_text(json.dumps({"inflows": rows}))
    names = {"POLICY": policies / SMALL, "OTHER": policies / LARGE, "GIVEN": given}
    names["CASE"] = cases / f"{SMALL}.json"
    assert simulate.main([str(names.get(word, word)) for word in words]) == 2
    out, errors = capsys.readouterr()
    assert text in errors
    assert "Traceback" not in errors
    assert out == ""
