"""The benchmarks run, and two runs can be compared."""

import itertools
import json
import os
import re
from pathlib import Path

import pytest

from bench import machine, nodes, recording
from bench.plan import OURS, Options
from bench.ranks.timing import FEWEST_BLOCKS, FEWEST_CALLS, Side, measure
from bench.recording import extra_info
from bench.report import pages
from bench.report.data import MOST_RUNS, RECORDED, add_run, load, runs_of, thin
from bench.report.notes import unexplained
from bench.report.outcomes import Growth, Outcome
from docs.refresh import PAGES
from tests.command import python
from tests.grid import why_not

ROOT = Path(__file__).parents[2]
DEADLINE_S = 150


def output_of(*words):
    ours = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    return python("-m", *words, within_s=DEADLINE_S, cwd=ROOT, env=ours).stdout


@pytest.mark.slow
def test_a_row_is_measured_beside_its_peer_and_compared(tmp_path):
    if why := why_not("openmpi"):
        pytest.skip(why)
    made = str(tmp_path / "run.json")
    said = output_of(
        "pytest", "bench/cases/test_collectives.py", "-k", "allreduce_32_B-2_ranks-openmpi-fresh",
        "--benchmark-only", "--rounds=1", "--block=0.001", f"--benchmark-json={made}",
    )  # fmt: skip
    assert "times of cobre_comm / the peer's" in said
    for benchmark in json.loads(Path(made).read_text())["benchmarks"]:
        assert benchmark["extra_info"]["blocks"] >= FEWEST_BLOCKS
        assert benchmark["extra_info"]["calls"] >= FEWEST_CALLS
    compared = output_of("bench.compare", made, made)
    assert compared.startswith("0 of 1 figures")


def test_calls_of_a_block_do_not_depend_on_what_the_first_pass_took():
    """In `@njit` code, the first pass takes seconds to compile; a call then takes microseconds."""
    passes = []

    def prepare(calls):
        passes.append(calls)
        # the seconds that the block reports
        return lambda: 1.0 if len(passes) == 1 else calls * 1e-5

    found = measure({"ours": Side(prepare)}, lambda seconds: seconds, Options(11, 0.02, 4.0))
    assert len(found["samples_s"]["ours"]) == 11
    assert found["calls"] == {"ours": 2000}
    assert passes[-11:] == [2000] * 11


def test_a_call_that_takes_longer_than_a_block_is_measured_often_enough():
    found = measure(
        {"slow": Side(lambda calls: lambda: calls * 0.5)}, lambda seconds: seconds, Options()
    )
    assert len(found["samples_s"]["slow"]) >= FEWEST_BLOCKS
    assert len(found["samples_s"]["slow"]) * found["calls"]["slow"] >= FEWEST_CALLS


TOLD = {"label": "barrier", "operation": "barrier", "ranks": 2, "side": "cobre_comm"}


@pytest.mark.parametrize(("blocks", "calls"), [(9, 1000), (10, 2)])
def test_a_figure_of_too_few_calls_is_not_recorded(blocks, calls):
    with pytest.raises(ValueError, match="too few for a figure"):
        extra_info([1e-6] * blocks, **TOLD, calls=calls)


def test_a_figure_of_too_few_calls_is_not_in_the_report(tmp_path):
    infos = [
        {**extra_info([1e-6] * 10, **TOLD, calls=3), "label": "kept"},
        {**extra_info([1e-6] * 10, **TOLD, calls=3), "label": "left out", "calls": 29},
    ]
    path = add_run(tmp_path / "run.json", "2026-01-01", {}, [thin(info) for info in infos])
    assert [record.label for record in load([path]).records] == ["kept"]


def recorded_ratios(path, ratios):
    """Record a run for each ratio; each run has a peer ten times slower than the run before it."""
    for number, ratio in enumerate(ratios):
        theirs = [1e-6 * 10**number] * 10
        ours = [ratio * seconds for seconds in theirs]
        told = {**TOLD, "beside": "openmpi", "setting": "over MPI", "backend": "mpi"}
        infos = [
            extra_info(ours, **told, ratio_to={"Open MPI": recording.ratios(ours, theirs)}),
            extra_info(theirs, **told | {"side": "Open MPI", "backend": None}),
        ]
        add_run(path, f"2026-01-0{number + 1}", {}, [thin(info) for info in infos])
    return path


def test_a_record_keeps_its_newest_runs_and_each_of_them_once(tmp_path):
    path = recorded_ratios(tmp_path / "run.json", [1.0] * (MOST_RUNS + 2))
    recorded_ratios(path, [1.0] * (MOST_RUNS + 2))
    kept = [run["datetime"] for run in runs_of(path)]
    assert kept == [f"2026-01-0{day}" for day in range(3, MOST_RUNS + 3)]


def test_a_figure_of_several_runs_is_their_median_with_their_span(tmp_path):
    """A figure is a median of ratios, because times differ more between runs than within a run."""
    results = load([recorded_ratios(tmp_path / "run.json", [1.32, 0.31, 0.8])])
    ours, theirs = results.records
    assert (theirs.p50_s, len(results.runs)) == (1e-5, 3)
    ratio = ours.ratio_to["Open MPI"]
    assert (ratio.median, ratio.low, ratio.high) == pytest.approx((0.8, 0.31, 1.32))
    cells = pages.TABLES["mpi"].text(results).splitlines()[-1].split("|")
    assert cells[2].strip() == "3.10 / 10.0 ~ 0.80 (0.31 to 1.32)"


def test_growth_is_that_of_each_run(tmp_path):
    for day, (two, sixteen) in enumerate([(1e-6, 8e-6), (5e-6, 10e-6), (1e-6, 3e-6)], 1):
        seconds = {2: two, 16: sixteen}
        told = [
            extra_info([s] * 10, **TOLD | {"operation": "growth", "ranks": ranks})
            for ranks, s in seconds.items()
        ]
        path = add_run(tmp_path / "run.json", f"2026-01-0{day}", {}, [thin(each) for each in told])
    [grown] = Growth("grown", 8, ("barrier", 2), ("barrier", 16)).outcomes(load([path]))
    assert (grown.value, grown.low, grown.high, grown.runs) == pytest.approx((3, 2, 8, 3))


def test_the_version_of_intel_mpi_is_that_of_its_own_folder(tmp_path, monkeypatch):
    found = tmp_path / "lib" / "python3.11" / "site-packages" / "impi_rt-2021.18.1.dist-info"
    found.mkdir(parents=True)
    (found / "METADATA").write_text("Metadata-Version: 2.1\nName: impi-rt\nVersion: 2021.18.1\n")
    monkeypatch.setattr(machine, "INTEL_PREFIX", tmp_path)
    assert machine.versions()["impi-rt"] == "2021.18.1"


@pytest.mark.parametrize(
    ("note", "refused"),
    [
        ([], True),
        ([{"row": "njit", "tried": "x"}], True),
        ([{"row": "njit", "ranks": 4, "limit": "why"}], False),
    ],
)
def test_ratios_far_apart_need_a_note_that_names_the_ranks(note, refused):
    row = [Outcome("njit", 0.25, ranks, value=value) for ranks, value in ((2, 0.76), (4, 11.0))]
    near = [Outcome("barrier", 0.8, ranks, value=value) for ranks, value in ((2, 0.3), (4, 0.85))]
    found = unexplained([row, near], note)
    assert bool(found) is refused
    assert all("11 with 4 ranks and 0.76 with 2 ranks" in text for text in found)


@pytest.fixture(scope="module")
def recorded():
    return load(sorted(RECORDED.glob("*.json")))


def test_pages_have_each_table_once_and_can_make_it(recorded):
    told = "".join(page.read_text() for page in PAGES)
    named = re.findall(r"^<!-- table (.+) -->$", told, re.MULTILINE)
    assert sorted(named) == sorted(pages.TABLES)
    for name in named:
        assert pages.MAKERS["table"](recorded, name).count("\n") > 1, name


def test_a_start_stands_beside_the_fastest_mpi(recorded):
    """In the README a cell names the peer with which our ratio is the largest."""
    told = pages.speed_text(recorded, "growth").splitlines()
    [row] = [line.split("|")[2:-1] for line in told if "a job of one allreduce" in line]
    jobs = recorded.find(label="a job of one allreduce", setting="growth, starts", side=OURS)
    ratios = {job.ranks: max((r.median, name) for name, r in job.ratio_to.items()) for job in jobs}
    assert len(ratios) == 4
    for ranks, cell in zip(pages.SPEED_RANKS, row, strict=True):
        end = "{:.2f} {}".format(*ratios[ranks]) if ranks in ratios else pages.NONE
        assert cell.strip().endswith(end)


def test_formulas_say_what_was_measured_between_nodes(capsys):
    assert nodes.check() == 0
    assert "48 of 54 within 10 %" in capsys.readouterr().out  # as docs/design/scale.md has it


def test_no_formula_is_faster_than_the_wire():
    for count, ranks, gbits in itertools.product((2, 3, 16, 256), (1, 4, 128), (1, 25, 100)):
        at = nodes.cluster(count, ranks, gbits)
        for label in ("one SDDP iteration", "one SDDP iteration into regions"):
            assert nodes.ROWS[label](at) > nodes.SDDP_BYTES * (1 - 1 / count) / at.link
