"""The wheel has the machine code of the kernels: ranks need no compiler, no numba and no cache."""

import os
import pathlib
import re
import sys
import zipfile

import pytest
from cobre_kernels.machine import target
from cobre_kernels.machine.compiling import shared_library

from tests.command import python

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a wheel has no machine code"),
]
ROOT = pathlib.Path(__file__).parents[2]
RANKS = 4
LINKED = target.LIBRARY if shared_library.linker() else target.OBJECTS
FROM_PYTHON = """
import sys
import cobre_comm
import numpy as np

with cobre_comm.create_communicator() as comm:
    total = np.empty(1)
    comm.allreduce(np.full(1, comm.rank + 1.0), total)
heavy = [name for name in ("numba", "llvmlite") if sys.modules.get(name)]
print(total[0], heavy, cobre_comm.__file__)
"""
COMPILED = """
import cobre_comm
import numpy as np
from numba import njit

@njit
def total(comm, send, recv):
    comm.allreduce(send, recv)
    return recv[0]

with cobre_comm.create_communicator() as comm:
    print(total(comm, np.full(1, comm.rank + 1.0), np.empty(1)), [], cobre_comm.__file__)
"""
HIDES_NUMBA = "import sys; sys.modules['numba'] = None\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheels")
    words = "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "-w", folder, ROOT
    python(*words, within_s=230)
    [path] = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def site(wheel, tmp_path_factory):
    """Return a folder in which the wheel is installed; Python finds it before this checkout."""
    folder = tmp_path_factory.mktemp("site")
    python("-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", folder, wheel)
    return folder


@pytest.fixture
def hiding(tmp_path):
    """Return a folder that hides numba from each Python that has this folder on its path."""
    folder = tmp_path / "hiding"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(HIDES_NUMBA)
    return folder


@pytest.fixture
def run(site, tmp_path):
    """Return a function that runs ranks for a user who has an empty home and may write nowhere."""
    (tmp_path / "program.py").write_text(FROM_PYTHON)
    (tmp_path / "compiled.py").write_text(COMPILED)
    home = tmp_path / "home"
    home.mkdir(mode=0o500)

    def run_program(program, backend, *path):
        words = "-m", "cobre_comm", "run", "--no-prefix", "-n", str(RANKS), "--backend", backend
        own = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
        own["PYTHONPATH"] = os.pathsep.join(map(str, [*path, site]))
        done = python(*words, program, cwd=tmp_path, env={**os.environ, **own})
        assert done.stderr == ""
        heavy = [] if LINKED == target.LIBRARY or program == "compiled.py" else ["llvmlite"]
        assert done.stdout.splitlines() == [f"10.0 {heavy} {site}/cobre_comm/__init__.py"] * RANKS
        assert not [*home.iterdir()], "root may write there"

    return run_program


def test_a_wheel_has_the_machine_code_of_each_level_of_one_instruction_set(wheel):
    machine = target.machine()
    assert re.search(rf"-py3-none-manylinux_2_17_{machine}\.whl$", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        files = {pathlib.Path(n).name for n in archive.namelist() if "/code/" in n}
        [entries] = [n for n in archive.namelist() if n.endswith("entry_points.txt")]
        assert "[numba_extensions]\ninit = " in archive.read(entries).decode()
    assert files == {target.file_name(level, LINKED) for level in target.LEVELS[machine]}


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_ranks_that_call_from_python_load_no_numba_no_llvm_and_say_nothing(run, backend):
    for _ in range(2):
        run("program.py", backend)


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_ranks_without_numba_call_from_python(run, hiding, backend):
    run("program.py", backend, hiding)


@pytest.mark.parametrize("level", target.levels())
def test_code_of_each_level_of_this_processor(run, site, tmp_path, monkeypatch, level):
    chosen = tmp_path / "chosen"
    chosen.mkdir()
    name = target.file_name(level, LINKED)
    (chosen / name).symlink_to(site / "cobre_kernels" / "code" / name)
    monkeypatch.setenv("COBRE_COMM_KERNELS", str(chosen))
    run("program.py", "shm")


def test_compiled_functions_call_the_same_code(run):
    run("compiled.py", "shm")


@pytest.mark.timeout(900)
def test_the_quick_check_passes_on_what_is_shipped(site, tmp_path):
    """The table of cases runs, from Python and from compiled code, on the library of the wheel."""
    words = "-m", "cobre_comm", "check", "--quick", "-n", "2", "--backends", "shm"
    done = python(*words, cwd=tmp_path, within_s=600, env={**os.environ, "PYTHONPATH": str(site)})
    assert f"kernels {target.levels()[0]}" in " ".join(done.stdout.split()), done.stdout
    assert re.search(r"All \d+ checks passed", done.stdout), done.stdout


def test_without_numba_a_wheel_is_built_that_has_no_machine_code(hiding, tmp_path):
    folder = tmp_path / "wheels"
    words = "-m", "hatchling", "build", "-t", "wheel", "-d", folder
    done = python(*words, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(hiding)})
    assert "without machine code: numba, which makes it, is not installed" in done.stderr
    [path] = folder.iterdir()
    assert path.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(path) as archive:
        assert not [name for name in archive.namelist() if "/code/" in name]
