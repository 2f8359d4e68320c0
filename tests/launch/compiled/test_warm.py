import os
import subprocess
import sys
import threading
import time

import pytest
from cobre_kernels.machine.compiling import cache_folder
from cobre_kernels.machine.compiling.cache_folder import kernel_folder

from cobre_comm.backends import SPECS
from cobre_comm.compile import kernels as compile_kernels
from cobre_comm.compile import warm
from cobre_comm.compile.lock import one_compiles_first
from tests.launch.command import EXAMPLES, PROGRAMS, cobre, environment


@pytest.fixture
def compilations(monkeypatch):
    """Stand in for the process that compiles: it writes markers that list one file."""
    seen = []

    def pretend(markers, environ):
        seen.append([marker.name for marker in markers.values()])
        for marker in markers.values():
            marker.write_text(f"{__file__}\n")

    monkeypatch.setattr(warm, "_compile", pretend)
    return seen


def test_compiles_once_for_the_same_surroundings(compilations, tmp_path):
    environ = {"XDG_CACHE_HOME": str(tmp_path), "NUMBA_NUM_THREADS": "2"}
    for _ in range(3):
        warm.warm_up(["shm"], environ)
    warm.warm_up(["shm"], environ | {"NUMBA_NUM_THREADS": "1"})
    [[marker]] = compilations
    assert (kernel_folder(environ) / marker).exists()


def test_one_process_compiles_what_is_missing_of_several(compilations, tmp_path):
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    assert warm.warm_up(["tcp"], environ) == []
    assert warm.warm_up(["local", "shm", "tcp"], environ) == []
    _, several = compilations
    assert [name.split("-")[1] for name in several] == ["local", "shm"]


@pytest.mark.parametrize(
    ("backend", "environ", "machines", "sets"),
    [
        ("local", {}, 1, ["local"]),
        ("shm", {"COBRE_TCP_SHARE": "0"}, 1, ["shm"]),
        ("tcp", {}, 1, ["tcp"]),
        ("tcp", {}, 2, ["tcp", "tcp-nodes"]),
        ("tcp", {"COBRE_TCP_SHARE": "0"}, 1, ["tcp", "tcp-nodes"]),
        ("tcp", {"COBRE_TCP_PRETEND_NODES": "0,1"}, 1, ["tcp", "tcp-nodes"]),
        ("mpi", {"COBRE_MPI_PRETEND_NODES": ""}, 1, ["mpi"]),
        ("mpi", {"COBRE_MPI_PRETEND_NODES": "0,1"}, 1, ["mpi", "mpi-nodes"]),
    ],
)
def test_ranks_of_one_machine_need_no_kernels_between_nodes(backend, environ, machines, sets):
    assert warm.kernel_sets([backend], environ, machines) == sets


def test_tells_what_is_not_compiled(monkeypatch, tmp_path):
    monkeypatch.setattr(warm, "_compile", lambda markers, environ: None)
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    assert warm.warm_up(["local", "shm"], environ) == ["local", "shm"]


@pytest.mark.parametrize("change", ["NUMBA_CPU_NAME", "NUMBA_OPT", "NUMBA_CACHE_DIR"])
def test_compiles_again_for_other_surroundings(compilations, tmp_path, change):
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    warm.warm_up(["shm"], environ)
    warm.warm_up(["shm"], environ | {change: str(tmp_path / "1")})
    assert len(compilations) == 2


def test_compiles_again_when_numbas_cache_has_gone(compilations, tmp_path):
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    warm.warm_up(["shm"], environ)
    marker = kernel_folder(environ) / compilations[0][0]
    marker.write_text(f"{tmp_path}/gone.nbi\n")
    warm.warm_up(["shm"], environ)
    assert len(compilations) == 2


@pytest.mark.parametrize(
    "upgrade",
    [
        lambda patch: patch.setattr(cache_folder, "source_hash", lambda: "of another version"),
        lambda patch: patch.setattr(cache_folder, "_version", lambda package: f"{package} 9"),
        lambda patch: patch.setattr(sys, "version", "9.9"),
    ],
    ids=["cobre_comm", "numba", "python"],
)
def test_an_upgrade_has_a_folder_of_its_own(compilations, monkeypatch, tmp_path, upgrade):
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    warm.warm_up(["shm"], environ)
    before = kernel_folder(environ)
    upgrade(monkeypatch)
    warm.warm_up(["shm"], environ)
    assert kernel_folder(environ) != before
    assert len(compilations) == 2


def test_another_environment_of_the_same_versions_finds_the_kernels(
    compilations, monkeypatch, tmp_path
):
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    warm.warm_up(["shm"], environ)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "other"))
    monkeypatch.setattr(warm, "_origin", lambda name: str(tmp_path / "other" / name))
    warm.warm_up(["shm"], environ)
    assert len(compilations) == 1


@pytest.mark.parametrize("which", ["user's", "version's"])
def test_kernels_are_loaded_from_no_folder_that_others_write(tmp_path, which):
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    folder = kernel_folder(environ)
    assert [path.stat().st_mode & 0o077 for path in (folder, folder.parent)] == [0, 0]
    planted = folder if which == "version's" else folder.parent
    planted.chmod(0o777)
    assert kernel_folder(environ) is None
    planted.chmod(0o700)
    assert kernel_folder(environ) == folder
    planted.rename(tmp_path / "aside")
    planted.symlink_to(tmp_path / "aside")
    assert kernel_folder(environ) is None
    if os.geteuid() == 0:  # who can be another user
        planted.unlink()
        (tmp_path / "aside").rename(planted)
        os.chown(planted, 65534, 65534)
        assert kernel_folder(environ) is None


def writable_by_all(folder):
    folder.chmod(0o777)


def sticky(folder):
    folder.chmod(0o1777)


def above_writable_by_all(folder):
    folder.parent.chmod(0o777)


def of_another_user(folder):
    if os.geteuid() != 0:
        pytest.skip("root alone can be another user")
    os.chown(folder, 65534, 65534)


def of_a_group(folder):
    if os.geteuid() != 0:
        pytest.skip("root alone can give a folder to any group")
    os.chown(folder, 0, 65534)
    folder.chmod(0o775)


@pytest.mark.parametrize(
    ("share", "says"),
    [
        (writable_by_all, "others may write to"),
        (sticky, "others may write to"),
        (above_writable_by_all, "others may write to"),
        (of_a_group, "others may write to"),
        (of_another_user, "belongs to user 65534"),
    ],
)
def test_a_shared_folder_is_refused_whoever_named_it(tmp_path, share, says):
    shared, own = tmp_path / "above" / "shared", tmp_path / "own"
    shared.mkdir(parents=True)
    environ = {"NUMBA_CACHE_DIR": str(shared), "XDG_CACHE_HOME": str(own)}
    assert kernel_folder(environ).parent == shared / "cobre_comm"
    assert cache_folder.refusal(environ) == ""
    share(shared)
    assert kernel_folder(environ).parent == own / "cobre_comm"
    sentence = cache_folder.refusal(environ)
    assert f"NUMBA_CACHE_DIR={shared}, because" in sentence
    assert says in sentence


def test_a_private_folder_in_a_sticky_one_is_used(tmp_path):
    tmp_path.chmod(0o1777)
    environ = {"NUMBA_CACHE_DIR": str(tmp_path / "mine"), "XDG_CACHE_HOME": str(tmp_path / "own")}
    assert kernel_folder(environ).parent == tmp_path / "mine" / "cobre_comm"
    assert cache_folder.refusal(environ) == ""


def test_what_others_have_put_into_a_shared_folder_is_not_loaded(tmp_path):
    """Pickles that raise stand for pickles that do harm."""
    hello = EXAMPLES / "hello_ranks.py"
    learnt, shared, own = (tmp_path / name for name in ("learnt", "shared", "own"))
    shared.mkdir()
    shared.chmod(0o1777)
    cobre("run", "-n", 1, hello, NUMBA_CACHE_DIR=str(learnt), XDG_CACHE_HOME=str(own))
    names = [path.relative_to(learnt) for path in learnt.rglob("*.nbi")]
    assert names
    ran = tmp_path / "ran"
    planted = b"cposix\nsystem\n(Vtouch " + str(ran).encode() + b"\ntR."
    for name in names:
        (shared / name).parent.mkdir(parents=True, exist_ok=True)
        (shared / name).write_bytes(planted)
    done = cobre("run", "-n", 1, hello, NUMBA_CACHE_DIR=str(shared), XDG_CACHE_HOME=str(own))
    assert not ran.exists()
    assert "kernels are not kept in NUMBA_CACHE_DIR=" in done.stderr


def test_the_latest_versions_are_kept(tmp_path):
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    folder = kernel_folder(environ)
    for age in range(20):
        older = folder.with_name(f"kernels-{age}")
        older.mkdir()
        os.utime(older, (time.time() - age - 1,) * 2)
    compile_kernels._forget_old_versions(folder)
    kept = {path.name for path in folder.parent.glob("kernels-*")}
    assert kept == {folder.name, *(f"kernels-{age}" for age in range(7))}


def test_nothing_to_do_without_jit(compilations, tmp_path):
    warm.warm_up(["shm"], {"XDG_CACHE_HOME": str(tmp_path), "NUMBA_DISABLE_JIT": "1"})
    assert compilations == []


def test_no_marker_where_there_is_no_place_for_it(compilations, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):  # our stand-in's; the real one carries on
        warm.warm_up(["shm"], {"XDG_CACHE_HOME": str(tmp_path / "file")})
    compile_kernels._write(tmp_path / "file" / "marker", [])


@pytest.mark.parametrize(
    ("backend", "own"), [("shm", "step.announce_closed_kernel"), ("tcp", "local.barrier_body")]
)
def test_marker_lists_the_files_of_numbas_cache(backend, own):
    warm.warm_up([backend], os.environ)
    ran = cobre("run", "-n", 2, "--backend", backend, EXAMPLES / "hello_ranks.py")
    assert ran.stderr == ""
    [spec] = [spec for spec in SPECS if spec.name == backend]
    listed = compile_kernels._cache_files(compile_kernels._functions(spec.kernels()))
    assert {path.name.split("-")[0] for path in listed} >= {
        own,
        "allgatherv.allgatherv_body",
        "allreduce.allreduce_body",
        "barrier.barrier_body",
        "broadcast.broadcast_body",
        "entry.allreduce_entry",
        "fast_path._allreduce",
        "fast_path._barrier",
    }


@pytest.mark.parametrize(
    ("backend", "settings"),
    [("shm", {}), ("tcp", {}), ("tcp", {"COBRE_TCP_PRETEND_NODES": "0,0,1"})],
)
def test_no_collective_uses_a_kernel_that_is_not_compiled_before_ranks_start(backend, settings):
    """Rare collectives load no such kernel either.

    The cache cannot tell: another test may have compiled it.
    """
    program = PROGRAMS / "loads.py"
    ran = cobre("run", "-n", 3, "--backend", backend, program, **settings)
    assert [line.partition("] ")[2] for line in ran.stdout.splitlines()] == ["[] []"] * 3


def test_no_compilation_where_numba_cannot_cache(monkeypatch, tmp_path):
    def no_place(functions):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(compile_kernels, "_cache_files", no_place)
    compile_kernels.main({"shm": str(tmp_path / "marker")})
    assert not (tmp_path / "marker").exists()


def test_the_process_that_compiles_gets_our_path_and_no_stdin(monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(subprocess, "run", lambda command, **rest: calls.append((command, rest)))
    warm._compile({"shm": tmp_path / "marker"}, os.environ)
    [(command, rest)] = calls
    assert str(tmp_path / "marker") in command[-1]
    assert rest["stdin"] == subprocess.DEVNULL


@pytest.mark.parametrize(
    "plant",
    [
        lambda folder, victim: folder.symlink_to(victim.parent),
        lambda folder, victim: (folder.mkdir(), (folder / "x.lock").symlink_to(victim)),
        lambda folder, victim: (folder.mkdir(), os.mkfifo(folder / "x.lock")),
        lambda folder, victim: folder.touch(),
    ],
    ids=["a link for the folder", "a link", "a fifo", "no folder"],
)
def test_what_others_have_planted_is_neither_written_nor_waited_for(plant, tmp_path):
    victim = tmp_path / "victim" / "x.lock"
    victim.parent.mkdir()
    victim.write_text("precious")
    plant(tmp_path / "cobre_comm", victim)
    with one_compiles_first("x", {"XDG_CACHE_HOME": str(tmp_path)}) as is_first:
        assert is_first
    assert victim.read_text() == "precious"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_another_user_cannot_hold_the_lock(tmp_path):
    tmp_path.chmod(0o777)
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    with one_compiles_first("x", environ) as is_first:
        assert is_first
    folder = tmp_path / "cobre_comm"
    assert [path.stat().st_mode & 0o077 for path in (folder, folder / "x.lock")] == [0, 0]
    os.chown(folder, 65534, 65534)
    (folder / "x.lock").unlink()
    with one_compiles_first("x", environ) as is_first:
        assert is_first
    assert not (folder / "x.lock").exists()


HOLD = """
import sys, time
from cobre_comm.compile.lock import one_compiles_first
with one_compiles_first("x") as is_first:
    print(is_first, flush=True)
    sys.stdin.read()
"""


def test_others_wait_for_the_first_one_but_not_for_ever(tmp_path):
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", HOLD]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=environment(**environ), **pipes) as holder:
        assert holder.stdout.readline() == b"True\n"
        began = time.monotonic()
        with one_compiles_first("x", environ, patience_s=0.3) as is_first:
            assert not is_first
        assert time.monotonic() - began >= 0.3
        threading.Timer(0.2, holder.stdin.close).start()
        with one_compiles_first("x", environ) as is_first:
            assert not is_first
        assert holder.wait(30) == 0
    with one_compiles_first("x", environ) as is_first:
        assert is_first
