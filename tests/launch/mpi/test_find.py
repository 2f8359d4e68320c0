import os
import pwd
import sys

import pytest

from cobre_comm.errors import InitializationFailed
from cobre_comm.processes.mpi import leftovers, mpiexec, probe
from cobre_comm.processes.mpi.mpiexec import find_mpiexec
from cobre_comm.processes.mpi.probe import Library
from cobre_comm.processes.mpi.variables import of_batch_job, without_outer_job
from tests.launch.command import PROGRAMS, cobre, environment
from tests.launch.mpi_libraries import LIBRARIES, RUN, needs

ACT = PROGRAMS / "act.py"
SAYS = {
    "openmpi": "mpirun (Open MPI) 4.1.6",
    "mpich": "HYDRA build details:\n    Version: 4.2",
    "impi": "Intel(R) MPI Library for Linux* OS, Version 2021.13 (HYDRA)",
    "nobody": "mpiexec 1.0",
}


@pytest.fixture
def pretend(monkeypatch, tmp_path):
    """Return two functions: one makes the starter of an MPI, the other lets mpi4py load an MPI."""

    def starter(folder, name, vendor):
        path = tmp_path / folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\necho '{SAYS[vendor]}'\n")
        path.chmod(0o700)
        return str(path)

    def loads(vendor):
        library = Library(vendor, vendor.upper(), str(tmp_path / "lib" / "libmpi.so"), {})
        monkeypatch.setattr(
            mpiexec,
            "find_library",
            lambda environ: Library(library.vendor, library.version, library.path, environ),
        )

    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    return starter, loads


ITS_MPI4PY = {
    "there/mpi4py/__init__.py": "class rc: pass",
    "there/mpi4py/MPI.py": "Get_library_version = lambda: 'Open MPI v5.0.3'\n__file__ = 'MPI.so'",
    "here/mpi4py.py": "raise SystemExit('a script of the user')",
    "here/json.py": "raise SystemExit('another one')",
}


def test_files_in_the_current_folder_are_not_asked_for_the_library(tmp_path, monkeypatch):
    for name, text in ITS_MPI4PY.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path / "here")
    found = probe.find_library({"PYTHONPATH": str(tmp_path / "there")})
    assert (found.vendor, found.version) == ("openmpi", "Open MPI v5.0.3")


@pytest.mark.parametrize("there", [True, False])
def test_open_mpi_starts_on_a_machine_without_ssh(pretend, tmp_path, there):
    """Where Open MPI 4 finds no remote shell, it refuses even ranks on the same machine."""
    starter, loads = pretend
    loads("openmpi")
    starter("bin", "mpiexec", "openmpi")
    if there:
        starter("bin", "ssh", "nobody")
    agent = find_mpiexec({"PATH": str(tmp_path / "bin")}).environment.get("OMPI_MCA_plm_rsh_agent")
    assert agent == (None if there else "false")


@pytest.mark.parametrize("vendor", ["openmpi", "mpich", "impi"])
def test_takes_the_starter_of_the_library_and_not_the_first_on_path(pretend, tmp_path, vendor):
    starter, loads = pretend
    loads(vendor)
    others = [name for name in ("openmpi", "mpich", "impi") if name != vendor]
    for other in others:
        starter(other, "mpiexec", other)
    right = starter("right", "mpirun", vendor)
    folders = os.pathsep.join(str(tmp_path / name) for name in [*others, "right"])
    environ = {"PATH": folders + os.pathsep + os.environ["PATH"]}
    found = find_mpiexec(environ)
    assert (found.library, found.command) == (vendor, (right,))
    assert found.start_command(3, ["a", "b"])[:3] == [right, "-n", "3"]
    assert found.start_command(3, ["a", "b"])[-2:] == ["a", "b"]
    beside = starter("bin", "mpiexec", vendor)  # near the library and the interpreter
    assert find_mpiexec(environ).command == (beside,)


def test_open_mpi_gets_a_home(pretend, monkeypatch):
    starter, loads = pretend
    loads("openmpi")
    starter("bin", "mpiexec.openmpi", "openmpi")
    environ = {"PATH": os.environ["PATH"]}
    assert find_mpiexec(environ | {"HOME": "/own"}).environment["HOME"] == "/own"
    assert find_mpiexec(environ).environment["HOME"] == pwd.getpwuid(os.geteuid()).pw_dir
    monkeypatch.setattr(mpiexec.pwd, "getpwuid", {}.__getitem__)  # this user has no name
    assert find_mpiexec(environ).environment["HOME"] == "/"


@pytest.mark.parametrize("library", LIBRARIES)
def test_ranks_start_without_a_variable_of_the_home(library, monkeypatch):
    chosen = needs(library)
    monkeypatch.delenv("HOME")
    done = cobre(*RUN, 2, ACT, "read", **chosen)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_starter_of_that_library(pretend, tmp_path):
    starter, loads = pretend
    loads("openmpi")
    other = starter("bin", "mpiexec", "mpich")
    with pytest.raises(InitializationFailed) as failure:
        find_mpiexec({"PATH": "/nowhere"})
    assert f"found: {other} (mpich)" in str(failure.value)
    assert "set COBRE_MPI_MPIEXEC to its path" in str(failure.value)


def test_the_user_may_choose_the_starter(pretend):
    starter, loads = pretend
    loads("mpich")
    own = starter("own", "wrapper", "nobody")
    environ = {"COBRE_MPI_MPIEXEC": f"{own} --quiet 'two words'", "PATH": os.environ["PATH"]}
    found = find_mpiexec(environ)
    assert found.start_command(2, ["a"]) == [own, "--quiet", "two words", "-n", "2", "a"]
    wrong = starter("own", "mpiexec", "openmpi")
    with pytest.raises(InitializationFailed, match="belongs to openmpi, but mpi4py loads MPICH"):
        find_mpiexec(environ | {"COBRE_MPI_MPIEXEC": wrong})
    with pytest.raises(InitializationFailed, match="there is no such program"):
        find_mpiexec(environ | {"COBRE_MPI_MPIEXEC": "no-such-starter"})


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("ModuleNotFoundError: No module named 'mpi4py'", "pip install 'cobre-comm[mpi]'"),
        ("ImportError: libmpi.so.40: cannot open shared object file", "LD_LIBRARY_PATH"),
        ("", "no reason was given"),
    ],
)
def test_why_mpi4py_loads_no_library(monkeypatch, said, advice):
    asked = []
    question = f"import sys; sys.exit({said!r} or 1)"
    monkeypatch.setattr(probe, "_QUESTION", question)
    monkeypatch.setattr(probe, "_ask", lambda e, ask=probe._ask: asked.append(e) or ask(e))
    with pytest.raises(InitializationFailed, match="could not start") as failure:
        find_mpiexec({"PATH": os.environ["PATH"]})
    assert advice in str(failure.value)
    assert len(asked) == 2
    assert asked[1]["LD_LIBRARY_PATH"] == os.path.join(sys.prefix, "lib")  # noqa: PTH118


@pytest.mark.parametrize("library", LIBRARIES)
def test_finds_both_libraries_of_one_environment(library):
    found = find_mpiexec(environment(**needs(library)))
    assert found.library == library
    command = found.start_command(7, ["program"])
    assert command[command.index("-n") + 1] == "7"
    assert ("--bind-to" in command) == (":OVERSUBSCRIBE" in command) == (library == "openmpi")
    as_root = "OMPI_ALLOW_RUN_AS_ROOT" in found.environment
    assert as_root == (library == "openmpi" and os.geteuid() == 0)


def test_variables_of_an_outer_job():
    users = {"OMPI_MCA_btl": "self", "PMIX_MCA_gds": "hash", "I_MPI_PIN": "0", "HOME": "/"}
    outer = {"PMI_RANK": "3", "PMIX_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "HYDI_CONTROL_FD": "7"}
    batch = {"SLURM_JOB_ID": "17", "PBS_NODEFILE": "/x", "SLURM_STEP_ID": "0", "SLURM_PROCID": "3"}
    everything = users | outer | batch
    assert without_outer_job(everything) == users
    assert of_batch_job(everything) == {"SLURM_JOB_ID": "17", "PBS_NODEFILE": "/x"}


def test_segments_that_a_process_has_mapped(tmp_path):
    assert leftovers.segments_of(0) == set()
    assert leftovers.segments_of(os.getpid()) == set()
    gone, there = tmp_path / "gone", tmp_path / "there"
    there.touch()
    leftovers.remove({str(gone), str(there)})
    assert not there.exists()


def test_a_starter_that_fails_is_the_error():
    library = needs(LIBRARIES[0])
    done = cobre(*RUN, 2, ACT, "read", COBRE_MPI_MPIEXEC="/bin/false", **library)
    assert done.returncode == 1
    assert done.stderr == "cobre-comm: mpiexec exited with code 1\n"


def test_the_words_of_a_starter_that_fails_are_shown(tmp_path):
    library = needs(LIBRARIES[0])
    starter = tmp_path / "starter"
    starter.write_text("#!/bin/sh\necho 'no slots here' >&2\nexit 7\n")
    starter.chmod(0o700)
    done = cobre(*RUN, 2, ACT, "read", COBRE_MPI_MPIEXEC=str(starter), **library)
    assert done.returncode == 7
    assert done.stderr.splitlines() == [
        "[mpiexec] no slots here",
        "cobre-comm: the last words of mpiexec:",
        "    no slots here",
        "cobre-comm: mpiexec exited with code 7",
    ]


def test_a_missing_starter_is_one_line_and_status_2():
    library = needs(LIBRARIES[0])
    done = cobre(*RUN, 2, ACT, "read", COBRE_MPI_MPIEXEC="no-such-starter", **library)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "COBRE_MPI_MPIEXEC=no-such-starter: there is no such program" in done.stderr
