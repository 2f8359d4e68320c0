"""The suite as the author of another backend meets it: docs/third-backends.md, as it stands."""

import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cobre_comm.testing.conformance import (
    FEATURES,
    MODULES,
    AllreduceTests,
    BarrierTests,
    ConformanceSuite,
    Grid,
    bodies,
)
from cobre_comm.testing.conformance.whole import PARTS
from tests.grid import OUR_GRID

PAGE = (Path(__file__).parents[2] / "docs" / "third-backends.md").read_text()
WITHOUT_PYTEST = """
import importlib, sys
sys.modules["pytest"] = sys.modules["hypothesis"] = None
for name in {names}:
    importlib.import_module("cobre_comm.testing.conformance." + name)
try:
    from cobre_comm.testing.conformance import AllreduceTests
except ImportError as error:
    print(error)
"""


@pytest.fixture
def author(tmp_path):
    """Return the folder of a distribution that has what the page shows, installed by its path."""
    for name, text in re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE, flags=re.DOTALL):
        (tmp_path / name).write_text(text)
    entry = re.search(r'entry-points\."(.*?)"\]\n(\w+) = "(.*?)"', PAGE)
    installed = tmp_path / "mine-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(f"[{entry[1]}]\n{entry[2]} = {entry[3]}\n")
    return tmp_path


def run_pytest(author, *arguments):
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(author)}
    return subprocess.run(
        command, cwd=author, env=environment, capture_output=True, text=True, timeout=120
    )


def test_the_page_runs_as_it_stands(author):
    chosen = "(TestBarrier and three) or (TestAllreduce and test_sum and mine-2) or TestRankSize"
    done = run_pytest(author, "-k", chosen, "--strict-markers", "-W", "error")
    assert done.returncode == 0, done.stdout
    assert "15 passed" in done.stdout, done.stdout


def test_what_it_cannot_do_is_skipped_with_the_reason(author):
    page = author / "test_conformance.py"
    declared = '{"njit": "it is written in Python", "regions": "not yet"}'
    page.write_text(page.read_text().replace("cannot = {}", f"cannot = {declared}"))
    done = run_pytest(author, "-k", "three_in_a_row or test_block_bounds")
    assert done.returncode == 0, done.stdout
    assert "3 passed, 6 skipped" in done.stdout, done.stdout
    assert "njit: it is written in Python" in done.stdout
    assert "regions: not yet" in done.stdout


def test_without_the_plugin_it_says_what_to_do(author):
    (author / "conftest.py").unlink()
    done = run_pytest(author)
    assert done.returncode != 0
    assert "-p cobre_comm.testing.plugin" in done.stdout + done.stderr


def test_bodies_need_neither_pytest_nor_hypothesis():
    names = [f"bodies.{module.name}" for module in pkgutil.iter_modules(bodies.__path__)]
    code = WITHOUT_PYTEST.format(names=["calls", "reference", *names])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "pip install 'cobre-comm[conformance]'" in done.stdout


def test_the_whole_suite_has_every_part():
    names = {part.__module__ for part in PARTS}
    assert names == {name for name in MODULES if defines_tests(name)}
    Whole = type("TestWhole", (ConformanceSuite,), {"grid": OUR_GRID})  # noqa: N806
    parts = [value for value in vars(Whole).values() if isinstance(value, type)]
    assert [part.__bases__ for part in parts] == [(part,) for part in PARTS]
    assert all(part.grid is OUR_GRID for part in parts)


def defines_tests(module):
    members = vars(__import__(module, fromlist=["_"])).items()
    return any(name.endswith("Tests") and v.__module__ == module for name, v in members)


def test_a_part_can_be_left_out_or_replaced():
    class OwnBarrier(BarrierTests):
        grid = Grid.of("mine")

    class Whole(ConformanceSuite):
        grid = Grid.of("mine")
        TestSignal = None
        TestBarrier = OwnBarrier

    assert Whole.TestSignal is None
    assert Whole.TestBarrier is OwnBarrier
    assert issubclass(Whole.TestAllreduce, AllreduceTests)


def test_a_feature_that_there_is_not_is_an_error():
    with pytest.raises(ValueError, match=f"choose from {', '.join(FEATURES)}"):
        type("Whole", (ConformanceSuite,), {"grid": OUR_GRID, "cannot": {"region": "typo"}})


def test_a_grid_is_needed():
    with pytest.raises(TypeError, match="Whole has no grid"):
        type("Whole", (ConformanceSuite,), {})
