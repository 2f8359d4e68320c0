"""``cobre-comm compile`` puts kernels into numba's cache before any job."""

import io
import re
import sys
import time
from types import SimpleNamespace

import pytest
from cobre_kernels.machine.compiling import progress
from cobre_kernels.machine.compiling.progress import MESSAGE
from cobre_kernels.machine.numba_internals import event

from cobre_comm import available_backends
from cobre_comm.cli import main
from cobre_comm.compile import warm
from tests.launch.command import EXAMPLES, PROGRAMS, cobre


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """Return the backends for which the command asks for kernels; nothing is compiled."""
    seen = []

    def pretend(markers, environ):
        seen.extend(markers)
        for marker in markers.values():
            marker.write_text(f"{__file__}\n")

    monkeypatch.setattr(warm, "_compile", pretend)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return seen


def test_everything_that_can_be_used(asked, capsys):
    assert main(["compile"]) == 0
    usable = [name for name in ("local", "shm", "tcp", "mpi") if name in available_backends()]
    between = [f"{name}-nodes" for name in usable if name in ("tcp", "mpi")]
    assert sorted(asked) == sorted([*usable, *between, warm.RARE])
    assert capsys.readouterr().out == f"compiled: {', '.join(usable)}\n"


def test_some(asked, capsys):
    assert main(["compile", "--backends", "tcp, SHM,tcp"]) == 0
    assert asked == ["tcp", "tcp-nodes", "shm", warm.RARE]
    assert capsys.readouterr().out == "compiled: tcp, shm\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--backends", "smh"], "'smh' is not one of local, shm, tcp, mpi"),
        (["--backends", ""], "'' is not one of"),
        (["--backends", "mpi"], "mpi cannot be used here; try `cobre-comm check`"),
        (["-n", "2"], "unrecognized arguments"),
    ],
)
def test_refusals_are_one_line(asked, capsys, monkeypatch, words, told):
    monkeypatch.setattr("cobre_comm.backends.mpi.library.why_not", lambda: "no MPI")
    with pytest.raises(SystemExit) as caught:
        main(["compile", *words])
    assert caught.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("cobre-comm compile: error: ")
    assert told in line
    assert asked == []


def test_no_cache_is_an_error(capsys, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert main(["compile", "--backends", "local,shm"]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert f"not in a cache: local, shm, {warm.RARE}; " in line
    assert "set NUMBA_CACHE_DIR" in line


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_the_seconds_of_one_long_function(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_PERIOD_S", 0.01)
    monkeypatch.setenv("COLUMNS", "76")
    with progress.progress():
        compiled = SimpleNamespace(py_func=test_some)
        with event.trigger_event("numba:compile", data={"dispatcher": compiled}):
            until = time.monotonic() + 60
            while terminal.getvalue().count("0 s test_so") < 3:  # and cut at the 75th column
                assert time.monotonic() < until
                time.sleep(0.01)
    *_, last = terminal.getvalue().split("\r\x1b[K")
    assert re.fullmatch(re.escape(MESSAGE) + r" \d+\.\d s\n", last)


def test_nothing_is_said_where_nothing_is_compiled(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress.progress():
        pass
    assert sys.stderr.getvalue() == ""


@pytest.mark.slow
@pytest.mark.parametrize("by", ["compile", "shm", "tcp"])
def test_jobs_find_everything_compiled(by, tmp_path):
    """After the command, or an earlier job with fewer kernels, nothing is left to compile."""
    empty = tmp_path / "empty.py"
    empty.touch()
    job = ["run", "-n", 2, "--backend"]
    words = ["compile"] if by == "compile" else [*job, by, empty]
    cold = cobre(*words, NUMBA_CACHE_DIR=str(tmp_path))
    first, last = cold.stderr.splitlines()
    assert (first, last[:32]) == (MESSAGE, "cobre-comm: kernels compiled in ")
    compiled = set(tmp_path.rglob("*.nb?"))
    for backend in ("shm", "tcp") if by == "compile" else (by,):
        program = PROGRAMS / "loads.py" if by == "compile" else EXAMPLES / "hello_ranks.py"
        again = cobre(*job, backend, program, NUMBA_CACHE_DIR=str(tmp_path))
        assert again.stderr == ""
        assert set(tmp_path.rglob("*.nb?")) == compiled
