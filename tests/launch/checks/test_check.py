"""``cobre-comm check``: checks that pass, the report on a planted fault, reasons not to check."""

import dataclasses
import importlib.metadata
import json
import os
import pathlib
import re
import signal
import sys
import time

import psutil
import pytest

from cobre_comm import Stats, WayStats, cli
from cobre_comm.check import document, plan, sddp, table
from cobre_comm.check.backends import find_backends
from cobre_comm.check.result import COLUMNS, Check, Missing, Point, Result
from cobre_comm.check.runner import NOT_TRIED, run_all
from cobre_comm.check.training import Witness
from cobre_comm.journal.stats import SLOTS_ONLY
from cobre_comm.testing import RankPool, leftovers
from cobre_comm.testing.cases.mixed import bits
from tests.command import run
from tests.launch.command import COMMAND, Running, cobre, environment

NEEDED = {"numba", "llvmlite", "numpy", "cobre-comm"}
# Hides modules in every process of the check, also in the ranks.
HIDE = """
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hide())
"""


@pytest.fixture
def numba_alone(tmp_path):
    """Return variables with which Python finds numba and what numba requires, and nothing else."""
    hidden = {
        module
        for module, owners in importlib.metadata.packages_distributions().items()
        if not NEEDED & set(owners) and "." not in module
    }
    (tmp_path / "sitecustomize.py").write_text(HIDE.format(hidden=hidden))
    return {"PYTHONPATH": str(tmp_path)}


def test_nothing_but_numba_is_needed_for_the_table(numba_alone):
    words = "-c", "import importlib; [importlib.import_module(each) for each in ('rich', 'pytest')]"
    assert "No module named 'rich'" in cobre(*words, before=[sys.executable], **numba_alone).stderr
    done = cobre("check", "--quick", "--backends", "mpi", **numba_alone)
    assert done.returncode == 1
    table, rule, row, reason, last = done.stdout.splitlines()[-5:]
    assert table.split()[:3] == ["backend", "ranks", "collectives"]
    assert set(rule) == {"-", " "}
    assert row.split() == ["mpi", *["-"] * (len(COLUMNS) + 2)]
    assert reason.startswith("mpi cannot run here: mpi4py is not installed")
    assert last.startswith("Nothing ran; mpi cannot run here")


@pytest.mark.slow
def test_quick_check_passes_with_nothing_but_numba(numba_alone):
    words = ["check", "--quick", "-n", "2", "--backends", "local,shm", "--json"]
    # the training of this check may have to be compiled
    done = cobre(*words, within_s=230, **numba_alone)
    told = json.loads(done.stdout)
    assert (done.returncode, told["failed"]) == (0, 0), done.stdout + done.stderr
    assert told["ok"]
    assert told["passed"] == len(told["checks"])
    assert {check["outcome"] for check in told["checks"]} == {"passed"}
    groups = {}
    for check in told["checks"]:
        groups.setdefault((check["backend"], check["ranks"]), {}).setdefault(
            check["group"], set()
        ).add(check["name"])
    assert list(groups) == [("local", 1), ("shm", 2)]
    assert all(list(each) == list(COLUMNS.values()) for each in groups.values())
    killed, errors = groups["shm", 2]["killed rank"], groups["shm", 2]["errors"]
    assert "struck: named by the others which wait (njit)" in killed
    assert "disagreement: two calls (njit)" in errors
    assert {"numba", "numpy", "Python", "processor"} <= set(told["machine"])
    assert [each["backend"] for each in told["large_calls"]] == ["shm"]


@pytest.fixture
def only(monkeypatch):
    """Return a function that limits the command to some of its checks."""
    whole = plan.checks

    def keep(*kept):
        def few(point, witness, *, quick):
            checks = whole(point, witness, quick=quick)
            return [check for check in checks if (check.column, check.name) in kept]

        monkeypatch.setattr(plan, "checks", few)

    return keep


def check(*words):
    return cli.main(["check", "--quick", *words])


def test_the_ways_of_large_calls_are_shown(only, capsys):
    only(("python", "large calls: all ranks take the same way"))
    assert check("-n", "2", "--backends", "local,shm") == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "shm, 2 ranks: " in line]
    if lines != [f"shm, 2 ranks: {SLOTS_ONLY}"]:
        first, second = lines
        assert re.fullmatch(
            r"shm, 2 ranks: broadcast of 8 MiB: (slots|streamed|read|both ends) is the fastest "
            r"\(slots \S+ [mu]?s, streamed \S+ [mu]?s, read \S+ [mu]?s, both ends \S+ [mu]?s\)",
            first,
        )
        assert second.startswith("shm, 2 ranks: allgatherv of 8 MiB: ")


def test_the_ways_of_large_calls_in_the_document():
    way = WayStats("allgatherv", 2**23, 25, "read", {"slots": 0.002, "read": 0.001})
    results = [
        Result(Point("shm", 2), "python", "one", 1.0, stats=Stats(0, 2, {}, ways=(way,))),
        Result(Point("tcp", 2), "python", "one", 1.0, stats=Stats(0, 2, {}, slots_only=True)),
        Result(Point("tcp", 2), "python", "two", 1.0),
    ]
    told = document.document({}, [], results, quick=True, seconds=1.0)
    assert json.loads(json.dumps(told["large_calls"])) == [
        {"backend": "shm", "ranks": 2, "slots_only": False, "ways": [way._asdict()]},
        {"backend": "tcp", "ranks": 2, "slots_only": True, "ways": []},
    ]


def wrong_on_the_last(comm, caller, seeds, longest):
    digest = bits.reduce_all(comm, caller, seeds, longest)
    return "planted" if comm.rank == comm.size - 1 else digest


def test_other_bits_are_found(only, monkeypatch, capsys):
    right = dataclasses.replace(bits.CASES[0], callers=("python",))
    wrong = dataclasses.replace(right, name="planted", body=wrong_on_the_last)
    monkeypatch.setattr(plan, "table", lambda: {"bits": (right, wrong)})
    only(("bits", "bits: allreduce (python)"), ("bits", "bits: planted (python)"))
    assert check("-n", "2", "--backends", "shm", "--json") == 1
    told = json.loads(capsys.readouterr().out)
    failed = [each for each in told["checks"] if each["outcome"] == "failed"]
    assert (told["passed"], told["failed"], told["ok"]) == (1, 1, False)
    assert [each["name"] for each in failed] == ["bits: planted (python)"]
    assert "ranks [1] have other bits than plain NumPy" in failed[0]["detail"]


@pytest.mark.slow
def test_another_training_is_found_and_named(only, monkeypatch, capsys):
    only(("sddp", "gen_h4_t5_k3, first"))
    found = sddp.differences

    def planted(one, other):
        return [*found(one, other), *(["cuts_sha256"] if other["backend"] == "shm" else [])]

    monkeypatch.setattr(sddp, "differences", planted)
    assert check("-n", "1", "--backends", "local,shm") == 1
    shown = capsys.readouterr().out
    assert "shm, 1 rank, SDDP: gen_h4_t5_k3, first" in shown
    assert "cuts_sha256: not the same bits as with local, 1 rank" in shown
    assert shown.splitlines()[-1].startswith("1 of 2 checks failed")


def test_trainings_that_may_compile_have_no_limit(monkeypatch):
    seen = []
    monkeypatch.setattr(sddp, "train", lambda *words: seen.append(words) or {"lower_bound": []})
    monkeypatch.setattr(sddp, "differences", lambda one, other: [])
    witness, pool = Witness(quick=True), RankPool("local", 1)
    for point in (Point("local", 1), Point("shm", 4), Point("tcp", 4)):
        for each in witness.checks(point):
            each.run(pool)
    case, compiles = "gen_h4_t5_k3", ("--iterations", "0")
    assert seen == [("local", 1, case, (), None), ("shm", 1, case, compiles, None),
                    ("shm", 4, case, ()), ("tcp", 4, case, ())]  # fmt: skip


def fails(comm):
    raise ArithmeticError(f"rank {comm.rank} [/] of {comm.size}")


def test_a_body_that_fails_is_shown_with_its_traceback(monkeypatch, capsys):
    planted = Check("errors", "planted", lambda pool: pool.run(fails))
    monkeypatch.setattr(plan, "checks", lambda *_, **__: [planted])
    assert check("-n", "2", "--backends", "shm") == 1
    shown = capsys.readouterr().out
    assert "shm, 2 ranks, errors: planted" in shown
    assert "ArithmeticError: rank 1 [/] of 2" in shown


def hangs_in_here(comm):
    time.sleep(100)


def test_a_hang_is_a_failure_that_says_where(monkeypatch, capsys):
    planted = Check("njit", "x", lambda pool: pool.run(hangs_in_here, timeout_s=12))
    monkeypatch.setattr(plan, "checks", lambda *_, **__: [planted])
    assert check("-n", "2", "--backends", "tcp", "--json") == 1
    [told] = json.loads(capsys.readouterr().out)["checks"]
    assert "rank 1 was still busy at the deadline" in told["detail"]
    assert "hangs_in_here" in told["detail"]


class Quiet:
    def begin(self, point, check):
        pass

    def end(self, result):
        pass


def test_after_three_failures_in_a_row_the_rest_is_not_tried():
    tried = []

    def does(pool):
        tried.append(pool.size)
        if len(tried) != 2:
            raise OSError("no luck")

    checks = [Check("errors", str(number), does) for number in range(7)]
    results = run_all({Point("shm", 3): checks}, Quiet())
    assert [result.passed for result in results] == [number == 1 for number in range(7)]
    assert [result.detail == NOT_TRIED for result in results] == [False] * 5 + [True] * 2
    assert all("no luck" in results[number].detail for number in (0, 2, 3, 4))
    assert not document.is_right([], results)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--backends", "smoke"], "no backend 'smoke'; choose from local, shm, tcp, mpi, mpi-open"),
        (["--backends", "mpi-lam"], "choose from mpi-openmpi[-net], mpi-mpich[-net]"),
        (["--backends", ","], "--backends needs a name"),
        (["-n", "2,x"], "numbers of ranks with commas, as 1,2,4; got '2,x'"),
        (["-n", "0"], "between 1 and 4096, got 0"),
        (["--fast"], "unrecognized arguments: --fast"),
    ],
)
def test_bad_arguments_are_one_line_and_status_2(words, said, refusal):
    assert said in refusal(["check", *words])


def test_the_table_tells_what_passed_and_what_failed():
    results = [
        Result(Point("shm", 2), column, name, 1.25, detail)
        for column, name, detail in (
            ("python", "one", ""), ("python", "two", "no luck"), ("sddp", "three", NOT_TRIED),
        )
    ]  # fmt: skip
    lines = table.of_results(results, [Missing("mpi", "no library", False)]).splitlines()
    assert re.split(r"  +", lines[2]) == [
        "shm", "2", "1 of 2 failed", *["-"] * (len(COLUMNS) - 2), "1 of 1 failed", "3.8",
    ]  # fmt: skip
    assert lines[4:] == [
        "mpi cannot run here: no library", "",
        f"shm, 2 ranks, {COLUMNS['python']}: two", "  no luck",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["PYTHONOPTIMIZE", "NUMBA_DISABLE_JIT"])
def test_what_makes_it_worthless_is_refused(name, monkeypatch, refusal):
    monkeypatch.setenv(name, "1")
    assert f"{name} is set" in refusal(["check"])


@pytest.fixture
def no_mpi(tmp_path, monkeypatch):
    """Hide mpi4py behind a package that cannot be imported."""
    package = tmp_path / "mpi4py"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('planted: no libmpi.so')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def test_reason_of_a_backend_that_was_not_asked_for(no_mpi):
    found, missing = find_backends([])
    assert {"local", "tcp"} <= set(found)
    assert not any(name.startswith("mpi") for name in found)
    reasons = {each.backend: each for each in missing}
    assert "planted: no libmpi.so" in reasons["mpi"].reason
    assert not reasons["mpi"].asked


def test_a_backend_that_was_asked_for_and_cannot_run(no_mpi):
    done = cobre("check", "--backends", "mpi", PYTHONPATH=os.environ["PYTHONPATH"])
    assert done.returncode == 1
    assert "mpi cannot run here: mpi4py cannot load" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Nothing ran; mpi cannot run here")


def test_a_full_shm_is_a_reason(monkeypatch):
    full = type("Usage", (), {"free": 3 * 2**20})
    monkeypatch.setattr("shutil.disk_usage", lambda path: full)
    _, [missing] = find_backends(["shm"])
    assert "3 MiB free" in missing.reason
    assert "--shm-size" in missing.reason


def test_mpi_is_checked_as_on_two_nodes_too():
    whole = plan.points(["local", "mpi-mpich"], [2, 1], quick=False)
    assert [(point.backend, point.ranks) for point in whole] == [
        ("local", 1), ("mpi-mpich", 1), ("mpi-mpich", 2), ("mpi-mpich:0,1", 2),
    ]  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_everything(number):
    with Running("check", "--quick", "-n", "2", "--backends", "shm", "--json") as job:
        children = started_ranks(job.process.pid)
        job.started = children
        job.process.send_signal(number)
        code, output, errors = job.finish()
        assert (code, output) == (128 + number, "")
        assert "Traceback" not in errors
        assert job.survivors() == []
    names = [path.name for path in pathlib.Path("/dev/shm").glob("cobre-test-*")]
    assert not any(f"-{job.process.pid}-" in name for name in names)
    assert leftovers() == []


def started_ranks(pid):
    """Wait until two ranks run; return all processes that the command has started."""
    for _ in range(600):
        children = psutil.Process(pid).children(recursive=True)
        ranks = [p for p in children if "cobre_comm.testing.ranks.bodies" in " ".join(p.cmdline())]
        if len(ranks) == 2:
            time.sleep(0.7)
            return children
        time.sleep(0.05)
    raise AssertionError("no ranks")


def test_help_names_the_exit_codes():
    done = run(*COMMAND, "check", "--help", env=environment())
    assert "130 interrupted" in " ".join(done.stdout.split())
