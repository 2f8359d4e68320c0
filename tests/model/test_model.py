"""The protocols hold in the models, and each model finds the faults that are planted in it."""

import os
import pathlib
import re
import shutil
import sys

import pytest

from tests.command import python
from tests.model import rows

CHECK = pathlib.Path(__file__).parents[2] / "model" / "check.py"
MODELS = ["step", "stripes", "wake", "death", "attach", "leaders", "work", "roll", "chair"]
SWITCHES = re.compile(
    r"(?:ifdef|ifndef|defined\() ?((?:FAULT|FIX)_\w+|TRUE_REASON|MARK_LATER|KEEPS_LOCK)"
)

needs_tools = pytest.mark.skipif(
    shutil.which("spin") is None or not any(map(shutil.which, ("gcc", "cc", "clang"))),
    reason="spin or a C compiler is missing: apt-get install spin gcc",
)


def check(*arguments, limit_s=120, **environment):
    """Run the checker; return its exit status and what it says."""
    told = {**os.environ, **environment}
    done = python(CHECK, *arguments, code=None, within_s=limit_s, env=told)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@needs_tools
def test_two_ranks(tmp_path):
    status, said = check("--model", "wake", "--ranks", "2", TMPDIR=str(tmp_path))
    assert status == 0, said
    assert "no error, all states searched" in said
    assert "found: " in said
    assert list(tmp_path.iterdir()) == []


@needs_tools
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_everything():
    status, said = check(limit_s=1750)
    assert status == 0, said


@needs_tools
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "wake --kind clean --define FAULT_RELEASE_STORE",
            "ERROR: assertion violated (sleeps_on[its]==255)",
        ),
        ("step --kind clean --depth 100", "NOT EXHAUSTIVE: the search was not deep enough"),
        # In a single step no parity comes again, so no slot can be overwritten.
        ("step --case ONE_SLOT --define STEPS=1", "NOT FOUND: no error in all states"),
    ],
)
def test_what_is_a_failure(words, said):
    """The checker fails on an error without a fault, an incomplete search, or a fault not found."""
    status, told = check("--ranks", "2", "--model", *words.split())
    assert status == 1
    assert said in told


@needs_tools
def test_a_trace_tells_the_way_to_the_error():
    status, said = check("--model", "wake", "--ranks", "2", "--case", "NO_WAKE", "--trace")
    assert status == 0
    assert "wake.pml" in said
    assert "assert((sleeps_on[its]==255))" in said


def test_missing_tools_have_a_status_of_their_own(tmp_path):
    status, said = check("--model", "step", PATH=str(tmp_path))
    assert status == 3
    assert "apt-get install spin" in said
    assert "apt-get install gcc" in said


def test_every_switch_of_the_models_is_checked():
    sys.path.insert(0, str(CHECK.parent))
    try:
        from cases import all_cases
    finally:
        sys.path.remove(str(CHECK.parent))
    checked = {(case.model, switch) for case in all_cases() for switch in case.switches}
    for model in MODELS:
        text = CHECK.with_name(f"{model}.pml").read_text()
        if '"memory.pml"' in text:
            text += CHECK.with_name("memory.pml").read_text()
        switches = set(SWITCHES.findall(text))
        assert switches
        assert {(model, switch) for switch in switches} <= checked


def test_the_model_of_the_leaders_has_the_rows_of_the_protocol():
    assert rows.PATH.read_text() == rows.promela(), "write it: python -m tests.model.rows"
