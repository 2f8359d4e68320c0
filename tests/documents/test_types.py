"""The programs of the documents pass the strictest checks of types that their readers may run."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

import cobre_comm
from cobre_comm import (
    HeapRegion,
    LocalBackend,
    MpiBackend,
    SharedRegion,
    ShmBackend,
    TcpBackend,
    Work,
)
from cobre_comm.arguments.other_names import SAID
from cobre_comm.old_names import OLD_NAMES
from tests.command import python

ROOT = Path(__file__).parents[2]
PAGES = (
    "README.md",
    "docs/howto/notebooks.md",
    "docs/howto/progress.md",
    "docs/howto/third-backends.md",
)
PROGRAMS = (
    "docs/start",
    "docs/howto/*",
    "docs/tutorials/*",
    "examples",
)
OF_OTHERS = ("numba_mpi",)  # modules that are not installed: a program that imports one is left out
DEADLINE_S = 200
METHODS = {
    "abort", "allgather", "allgatherv", "allreduce", "backend", "barrier", "broadcast", "close",
    "create_shared_region", "create_work", "enter_phase", "exact_sum", "gatherv", "is_leader",
    "max", "min", "phase", "phase_number", "rank", "share", "shares", "shrink", "size", "split",
    "split_local", "stats", "stop_requested", "sum", "topology",
}  # fmt: skip
OF_REGIONS = {"as_mut_slice", "as_slice", "close", "fence", "part"}
OLD = {name for names in OLD_NAMES.values() for name in names}
OF_WORK = {"claim", "close", "measured_costs", "reset"}
# A comment marks each line in which a checker has to find an error.
WRONG = """
from cobre_comm import Communicator, create_communicator, launch


def work(comm: Communicator, scale: float) -> float:
    return comm.sum(scale)


comm = create_communicator()
comm.bcast(3)  # wrong
launch(work, 2, args=("x",))  # wrong
launch(len, 2)  # wrong
half: str = launch(work, 2, args=(0.5,)).value  # wrong
"""


@pytest.mark.parametrize("kind", [LocalBackend, ShmBackend, TcpBackend, MpiBackend])
def test_a_communicator_shows_what_users_may_call(kind):
    """A class also has old names, and names of mpi4py; ``dir`` of an object omits them."""
    for each in (kind, cobre_comm.Communicator):
        assert {name for name in dir(each) if name[0] != "_"} - set(SAID) - OLD == METHODS


def test_a_communicator_and_a_region_show_nothing_more():
    with LocalBackend() as comm, comm.create_shared_region(3) as region:
        assert {name for name in dir(comm) if name[0] != "_"} == METHODS
        shown = {name for name in dir(region) if name[0] != "_"}
        assert shown == OF_REGIONS | {"count", "dtype", "nbytes", "shape"}
    for kind in (HeapRegion, SharedRegion):
        assert {name for name in dir(kind) if name[0] != "_"} - OLD == OF_REGIONS


def test_a_work_shows_nothing_more():
    assert {name for name in dir(Work) if name[0] != "_"} - OLD == OF_WORK
    with LocalBackend() as comm, comm.create_work(3) as work:
        shown = {name for name in dir(work) if name[0] != "_"}
    assert shown == OF_WORK | {"count", "start", "stop"}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Return a folder with the programs, laid out as readers have them, and a wrong program."""
    folder = tmp_path_factory.mktemp("programs")
    for pattern in PROGRAMS:
        for path in ROOT.glob(f"{pattern}/*.py"):
            if not any(name in path.read_text() for name in OF_OTHERS):
                target = folder / path.parent.relative_to(ROOT) / path.name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(path.read_text())
    for page in PAGES:
        blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.M)
        for number, block in enumerate(block for block in blocks if "import" in block):
            target = folder / page.replace(".md", "") / f"block_{number}.py"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block)
    (folder / "wrong").mkdir()
    (folder / "wrong" / "wrong.py").write_text(WRONG)
    # An older numba does not annotate types.
    (folder / "mypy.ini").write_text("[mypy]\n[mypy-numba.*]\nignore_missing_imports = True\n")
    # Each folder is a root of imports, because its programs import their neighbours by name.
    folders = sorted({path.parent for path in folder.rglob("*.py")})
    roots = [{"root": str(each.relative_to(folder))} for each in folders]
    (folder / "pyrightconfig.json").write_text(json.dumps({"executionEnvironments": roots}))
    return folder


def lines_found(said):
    """Return the numbers of the lines of the wrong program in which a checker finds an error."""
    return {int(line) for line in re.findall(r"wrong\.py:(\d+).*error", said)}


WRONG_LINES = {n for n, line in enumerate(WRONG.splitlines(), 1) if "# wrong" in line}


@pytest.mark.slow
def test_mypy_finds_what_is_wrong_and_nothing_else(programs):
    pytest.importorskip("mypy")
    folders = sorted({path.parent for path in programs.rglob("*.py")})
    assert len(folders) > 12
    said = {}
    for folder in folders:
        files = sorted(path.name for path in folder.glob("*.py"))
        done = python(
            "-m", "mypy", "--strict", "--config-file", programs / "mypy.ini",
            "--cache-dir", programs / "cache", *files, cwd=folder, code=None, within_s=DEADLINE_S,
        )  # fmt: skip
        said[folder.name] = done.stdout + done.stderr
    assert lines_found(said.pop("wrong")) == WRONG_LINES
    assert [text for text in said.values() if not text.startswith("Success")] == []


@pytest.mark.slow
def test_pyright_finds_what_is_wrong_and_nothing_else(programs):
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed: pip install 'pyright[nodejs]'")
    words = "-m", "pyright", "--pythonpath", sys.executable
    there = python(*words, "--version", cwd=programs, code=None, within_s=DEADLINE_S)
    if there.returncode != 0:
        pytest.skip(f"pyright cannot be had here: {(there.stdout + there.stderr)[-200:]}")
    done = python(*words, cwd=programs, code=None, within_s=DEADLINE_S)
    assert lines_found(done.stdout) == WRONG_LINES
    errors = [line for line in done.stdout.splitlines() if " - error" in line]
    assert [line for line in errors if "wrong.py" not in line] == []
