"""``cobre-comm compile``: kernels in numba's cache before any job."""

import pytest

from cobre_comm import available_backends
from cobre_comm.cli import main
from cobre_comm.compile import warm
from tests.launch.command import EXAMPLES, cobre


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """Return for which backends the command has had kernels compiled; nothing is."""
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
    assert asked == usable
    assert capsys.readouterr().out == f"compiled: {', '.join(usable)}\n"


def test_some(asked, capsys):
    assert main(["compile", "--backends", "tcp, SHM,tcp"]) == 0
    assert asked == ["tcp", "shm"]
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
    assert "not in a cache: local, shm; " in line
    assert "set NUMBA_CACHE_DIR" in line


@pytest.mark.slow
def test_jobs_find_everything_compiled(tmp_path):
    """In the cache that one call has filled for all backends, jobs leave nothing of their own."""
    cold = cobre("compile", NUMBA_CACHE_DIR=str(tmp_path))
    assert cold.stderr == f"{warm.MESSAGE}\n"
    compiled = set(tmp_path.rglob("*.nb?"))
    for backend in ("shm", "tcp"):
        words = ["run", "-n", 2, "--backend", backend, EXAMPLES / "hello_ranks.py"]
        assert cobre(*words, NUMBA_CACHE_DIR=str(tmp_path)).stderr == ""
        assert set(tmp_path.rglob("*.nb?")) == compiled


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_first_job_compiles_what_it_needs(backend, tmp_path):
    words = ["run", "-n", 2, "--backend", backend]
    empty = tmp_path / "empty.py"
    empty.touch()
    cold = cobre(*words, empty, NUMBA_CACHE_DIR=str(tmp_path))
    assert cold.stderr == f"{warm.MESSAGE}\n"
    compiled = set(tmp_path.rglob("*.nb?"))
    warm_run = cobre(*words, EXAMPLES / "hello_ranks.py", NUMBA_CACHE_DIR=str(tmp_path))
    assert warm_run.stderr == ""
    assert set(tmp_path.rglob("*.nb?")) == compiled  # nothing was left to the ranks
