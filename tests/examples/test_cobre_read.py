"""From a folder of Cobre's, training reaches Cobre's bound, or one sentence says why it cannot."""

import builtins
import json
import shutil
from functools import partial

import pytest
import train
from case.fields import CaseError
from cobre.__main__ import main
from cobre.folder import NotFromCobre
from cobre.read import read_folder
from cobre_variants import (
    BOUNDS,
    CASES,
    VARIANTS,
    edit,
    first_stages,
    make_variant,
    put,
    rows,
    statistics,
)
from conftest import EXAMPLE
from training.run import run_training

from tests.examples.cobre_changes import GENERATION, HYDRO, part, several

SHIPPED = EXAMPLE / "cases" / "cobre"


@pytest.fixture
def base(tmp_path):
    """Return a function that copies a case of Cobre's to a folder in which it can be changed."""

    def copy(number):
        [path] = CASES.glob(f"{number}-*")
        return shutil.copytree(path, tmp_path / number)

    return copy


@pytest.mark.parametrize("name", BOUNDS["cases"])
def test_a_deterministic_case_reaches_the_bound_of_cobre(comm, name):
    training = run_training(CASES / name, comm)
    assert training.lower_bound[-1] == pytest.approx(BOUNDS["cases"][name], rel=1e-9)


@pytest.mark.parametrize("name", VARIANTS)
def test_blocks_limits_and_openings_are_those_of_cobre(tmp_path, comm, name):
    training = run_training(make_variant(name, tmp_path / name), comm)
    assert training.lower_bound[-1] == pytest.approx(BOUNDS["variants"][name], rel=1e-9)


def test_1dtoy_reaches_the_bound_of_cobre(comm):
    training = run_training(SHIPPED / "1dtoy", comm)
    assert training.lower_bound[-1] == pytest.approx(BOUNDS["1dtoy"]["bound"], rel=1e-9)


def test_the_first_stages_of_4ree_reach_the_bound_of_cobre(tmp_path, comm):
    training = run_training(first_stages(SHIPPED / "4ree", tmp_path / "4ree", 3), comm)
    known = BOUNDS["4ree, first 3 stages"]["bound"]
    assert training.lower_bound[-1] == pytest.approx(known, rel=1e-9)


@pytest.mark.slow
def test_4ree_comes_as_near_its_optimum_as_cobre(comm):
    # After so many iterations neither bound is final, and each program samples other trajectories.
    training = run_training(SHIPPED / "4ree", comm, iterations=1000, trajectories=4)
    assert training.lower_bound[-1] == pytest.approx(BOUNDS["4ree"]["bound"], rel=3e-6)


hydro, turbine = partial(part, *HYDRO), partial(part, *GENERATION)
stage, training_of = partial(part, "stages", "stages", 0), partial(part, "config", "training")


def several_blocks(folder):
    """Divide both stages into two blocks."""
    for t in (0, 1):
        blocks = [{"id": k, "name": str(k), "hours": 365.0} for k in (0, 1)]
        put(folder, "stages", "stages", t, blocks=blocks)


OUT = {"scenario_source": {"seed": 1, "inflow": {"scheme": "out_of_sample"}}}
LACKED = [
    ([hydro(evaporation={"coefficients_mm": [1.0] * 12})], "evaporation"),
    ([turbine(model="fpha")], "FPHA"),
    ([turbine(model="quadratic")], "the generation model quadratic"),
    ([hydro(diversion={"downstream_id": 1, "max_flow_m3s": 2.0})], "diversion channels"),
    ([hydro(filling={"start_stage_id": 0})], "reservoirs that are being filled"),
    ([hydro(exit_stage_id=1)], "plants, buses or lines that come or go"),
    ([hydro(colour="blue")], "the field hydros.colour of system/hydros.json"),
    ([stage(risk_measure={"cvar": {"alpha": 0.1, "lambda": 0.5}})], "CVaR"),
    ([stage(block_mode="chronological")], "chronological blocks"),
    ([training_of(**OUT)], "out-of-sample scenarios"),
    ([part("stages", "policy_graph", type="cyclic")], "a cyclic horizon"),
    (
        [several_blocks, hydro(outflow={"min_outflow_m3s": 1.0, "max_outflow_m3s": None})],
        "least flows or powers of hydros in stages of several blocks",
    ),
    (
        [several_blocks, hydro(outflow={"min_outflow_m3s": 0.0, "max_outflow_m3s": 30.0})],
        "most outflows below the capacity of turbines in stages of several blocks",
    ),
    ([part("system/energy_contracts", contracts=[{"id": 0}])], "contracts"),
    ([part("scenarios/new", a=1)], "the file scenarios/new.json"),
    (
        [turbine(model="fpha"), stage(block_mode="chronological"), hydro(evaporation={"a": 1})],
        "chronological blocks, evaporation and FPHA",
    ),
]


@pytest.mark.parametrize(("changes", "told"), LACKED)
def test_what_is_lacked_is_told_in_one_sentence(base, changes, told):
    folder = base("d02")
    several(*changes)(folder)
    with pytest.raises(NotFromCobre) as raised:
        read_folder(folder)
    sentence = f"d02 is not read, because it has {told}, which this program lacks"
    assert str(raised.value) == sentence


def test_columns_and_values_that_differ_by_stage_are_told(base):
    folder = base("d02")
    rows(
        folder, "constraints/hydro_bounds", hydro_id=[0], stage_id=[1],
        max_storage_hm3=[190.0], filling_inflow_m3s=[1.0],
    )  # fmt: skip
    rows(
        folder, "constraints/penalty_overrides_hydro", hydro_id=[0], stage_id=[1],
        spillage_cost=[0.5],
    )  # fmt: skip
    rows(folder, "scenarios/inflow_ar_coefficients", hydro_id=[0], stage_id=[1], lag=[1.0])
    told = (
        "inflows that depend on those before, the column filling_inflow_m3s of "
        "constraints/hydro_bounds.parquet, bounds of storage that differ between stages and costs "
        "of spillage that differ between stages"
    )
    with pytest.raises(NotFromCobre, match=told):
        read_folder(folder)


def test_water_that_would_be_withdrawn_rather_than_spilt_is_told(base):
    folder = base("d11")
    put(folder, "penalties", "hydro", water_withdrawal_violation_pos_cost=0.001)
    hydro(outflow={"min_outflow_m3s": 0.0, "max_outflow_m3s": None})(folder)
    with pytest.raises(NotFromCobre, match="withdrawals of water beyond what is asked"):
        read_folder(folder)


def test_files_that_say_nothing_are_read(base):
    folder = base("d02")
    before = read_folder(folder)
    put(folder, "system/pumping_stations", pumping_stations=[])
    rows(folder, "scenarios/inflow_ar_coefficients", hydro_id=[], stage_id=[], lag=[])
    (folder / "README.md").write_text("a case\n")
    assert read_folder(folder) == before


def varying(folder):
    """Let the inflow of a case vary."""
    statistics(folder, 1, 1, 2, lambda *_: 30.0, lambda kind, e, t: 5.0 * (kind == "inflow"))
    edit(folder, "stages", lambda c: [s.update(num_scenarios=3) for s in c["stages"]])
    return folder


def test_openings_are_drawn_where_none_are_given(base):
    folder = varying(base("d02"))
    case = read_folder(folder)
    assert case["note"].startswith("Openings of d02 are drawn here")
    assert [len(p) for p in case["probabilities"]] == [3, 3]
    assert case == read_folder(folder)
    training_of(tree_seed=5)(folder)
    assert case["inflows"] != read_folder(folder)["inflows"]
    edit(folder, "stages", lambda c: [s.update(sampling_method="lhs") for s in c["stages"]])
    put(folder, "scenarios/correlation", profiles={"a": 1})
    with pytest.raises(NotFromCobre, match="it has correlated inflows and the sampling method lhs"):
        read_folder(folder)


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("stages.json", "{", "stages.json: the file: found no valid JSON"),
        ("stages.json", None, "stages.json: the file: found nothing"),
        ("system/buses.json", '{"buses": [{}]}', r"buses\[0\].id: found nothing"),
        ("scenarios/load_seasonal_stats.parquet", "x", "the file: found no valid Parquet"),
        (
            "initial_conditions.json",
            '{"storage": [], "filling_storage": []}',
            r"hydros\[0\].id: found 0, expected a hydro",
        ),
    ],
)
def test_a_wrong_field_is_told_with_its_file(base, file, content, told):
    path = base("d02") / file
    path.unlink()
    if content is not None:
        path.write_text(content)
    with pytest.raises(CaseError, match=f"d02/.*{told}"):
        read_folder(path.parents[len(file.split("/")) - 1])


def test_openings_that_do_not_fit_are_told(base):
    folder = varying(base("d02"))
    rows(
        folder, "scenarios/noise_openings", stage_id=[0, 1], opening_index=[0, 1],
        entity_index=[0, 0], value=[0.0, 1.0],
    )  # fmt: skip
    with pytest.raises(
        CaseError,
        match=r"opening_index, stage_id 0: found 1 openings, expected 3, as in stages\.json",
    ):
        read_folder(folder)


def test_train_takes_a_folder_and_ends_with_the_sentence(base, capsys):
    folder = base("d02")
    assert train.main([str(folder), "--quiet"]) == 0
    turbine(model="fpha")(folder)
    assert train.main([str(folder), "--quiet"]) == 2
    assert capsys.readouterr().err == (
        "d02 is not read, because it has FPHA, which this program lacks\n"
    )


def test_without_pyarrow_the_sentence_says_what_to_install(base, capsys, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert train.main([str(base("d02")), "--quiet"]) == 2
    assert "pip install pyarrow" in capsys.readouterr().err


def test_the_module_trains_and_converts(tmp_path, base, capsys):
    folder, ours = varying(base("d02")), tmp_path / "ours.json"
    assert main([str(folder), "--iterations", "2", "--quiet"]) == 0
    assert main([str(folder), "--as", str(ours)]) == 0
    assert capsys.readouterr().err.count("Openings of d02 are drawn here") == 2
    assert json.loads(ours.read_text()) == read_folder(folder)
    assert main([str(tmp_path / "no.json"), "--as", str(ours)]) == 2
    assert "no.json: No such file or directory" in capsys.readouterr().err
