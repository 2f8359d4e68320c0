import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import cobre_comm
from cobre_comm import cli
from cobre_comm.run.command import main as run
from cobre_comm.run.program import check_module, program_of
from tests.launch.command import PROGRAMS, cobre, lines_of

ACT = str(PROGRAMS / "act.py")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "-n", "2", "py.py"], "cannot open script 'py.py': No such file or directory\n"),
        (["run", "-n", "2", str(PROGRAMS)], "is a directory, not a script"),
        (["run", "-n", "2"], "a script is missing"),
        (["run", "-n", "2", "--"], "a script is missing"),
        (["run", "-n", "2", "-m"], "-m needs the name of a module"),
        (["run", "-n", "2", "-m", "no_such_module_here.x"], "no module 'no_such_module_here.x'"),
        (["run", "-n", "0", ACT], "between 1 and 4096, got 0"),
        (["run", "-n", "5000", ACT], "between 1 and 4096, got 5000"),
        (["run", "-n", "x", ACT], "takes a number or auto, got 'x'"),
        (["run", "-n", "2", ACT.removesuffix(".py")], f"; did you mean {ACT!r}?\n"),
        (["run", "-n", "2", "pytest"], "; a module is run by -m: -m pytest\n"),
        (["run", "-n", "2", "python3", "missing.py"], "cannot open script 'missing.py'"),
        (["run", "-n", "2", "python"], "a script is missing"),
        (["run", "-n", "2", "python", "-m"], "-m needs the name of a module"),
        (["run", "-n", "2", "/nowhere/python3", ACT], "there is no program '/nowhere/python3'\n"),
        (["run", "a.py", "-n", "2"], "how many ranks? say it by -n: cobre-comm run -n 2 a.py\n"),
        (["run", "a.py", "-n"], "how many ranks? say it by -n: cobre-comm run -n 4 a.py -n\n"),
        (["run"], "how many ranks? say it by -n: cobre-comm run -n 4 script.py\n"),
        (["run", "a.py", "x"], "how many ranks? say it by -n: cobre-comm run -n 4 a.py x\n"),
        (["run", "-m", "a", "x"], "how many ranks? say it by -n: cobre-comm run -n 4 -m a x\n"),
        (["run", "-n", "2", "--backend", "smoke", ACT], "there is no backend 'smoke'; available: "),
        (["run", "-n", "2", "--backend", "smh", ACT], "tcp, shm, local; did you mean shm?\n"),
        (["run", "-n", "2", "--log_dir=x", ACT], "--log_dir=x; did you mean --log-dir?\n"),
        (["check", "--quik"], "unrecognized arguments: --quik; did you mean --quick?\n"),
        (["check", "--backends", "tpc"], "did you mean tcp?\n"),
        (["status", "--wach"], "unrecognized arguments: --wach; did you mean --watch?\n"),
        (["explain", "CollectivFailed"], "; did you mean CollectiveFailed?\n"),
        (["explain", "cobre_comm.errors.workererror2"], "; did you mean WorkerError?\n"),
        (["chekc"], "unknown command 'chekc'; try `cobre-comm --help`; did you mean check?\n"),
        (["-n", "4", "a.py"], "missing; did you mean `cobre-comm run -n 4 a.py`?\n"),
        (["a.py", "x"], "missing; did you mean `cobre-comm run -n 4 a.py x`?\n"),
        (
            ["run", "-n", "2", "--backend", "mpi", "--nnodes", "2", ACT],
            "MPI's own mpiexec (or srun) starts ranks on several machines",
        ),
        (["run", "-n", "2", "--backend", "local", ACT], "is one process and cannot have 2 ranks"),
        (["run", "-n", "2", "--timeout", "-1", ACT], "0 (no limit) or more seconds, got -1.0"),
        (["run", "-n", "2", "--timeout", "nan", ACT], "0 (no limit) or more seconds, got nan"),
        (["run", "-n", "2", "--bind", "chip", ACT], "invalid choice: 'chip'"),
        (["run", "-n", "2", "--threads", "0", ACT], "--threads must be 1 or more, got 0"),
        (
            ["run", "-n", "2", "--log-dir", f"{ACT}/logs", ACT],
            f"cannot write to --log-dir '{ACT}/logs': Not a directory; name a folder",
        ),
        (["run", "-n", "2", "--quiet-ranks", "1,2", ACT], "the ranks of this job are 0 to 1"),
        (["run", "-n", "2", "--quiet-ranks", "1-0", ACT], "the ranks of this job are 0 to 1"),
        (["run", "-n", "2", "--quiet-ranks=-1", ACT], "takes ranks as in 1,3-5 or 1-, got '-1'"),
        (["run", "-n", "2", "--colour", ACT], "unrecognized arguments: --colour"),
        (["walk"], "unknown command 'walk'"),
        ([], "a command is missing"),
    ],
)
@pytest.mark.usefixtures("activated")
def test_bad_arguments_are_one_line_and_status_2(words, said, refusal):
    assert said in refusal(words)


@pytest.mark.parametrize(
    ("words", "variables", "said"),
    [
        (["-n", "2"], {"COBRE_COMM_BACKEND": "smh"}, "COBRE_COMM_BACKEND=smh: there is no backend"),
        (["-n", "2"], {"COBRE_COMM_BACKEND": "local"}, "one process and cannot have 2 ranks"),
        (
            ["-n", "2", "--nnodes", "1"],
            {"COBRE_COMM_BACKEND": "shm"},
            "leave out --backend, and COBRE_COMM_BACKEND",
        ),
        (
            ["-n", "4", "--backend", "tcp"],
            {"COBRE_TEST_PRETEND_NODES": "0,0,1"},
            "COBRE_TEST_PRETEND_NODES names the nodes of 3 ranks, and the job has 4; name the node",
        ),
        (
            ["-n", "2", "--backend", "tcp"],
            {"COBRE_TEST_PRETEND_NODES": "0,0,1,1"},
            "names the nodes of 4 ranks, and the job has 2",
        ),
    ],
)
def test_variables_that_cannot_be_meant_are_refused(words, variables, said, refusal, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert said in refusal(["run", *words, ACT])


def test_a_program_without_an_interpreter_cannot_start_ranks(refusal, monkeypatch):
    monkeypatch.setattr(sys, "executable", "")
    assert "sys.executable is empty, so no rank can be started" in refusal(["run", "-n", "2", ACT])
    with pytest.raises(ValueError, match="so no rank can be started"):
        cobre_comm.launch(len, 2)


@pytest.mark.parametrize(
    ("option", "variables", "chosen"),
    [
        ([], {"COBRE_COMM_BACKEND": "tcp"}, "tcp"),
        ([], {"COBRE_COMM_BACKEND": " AUTO "}, "shm"),
        (["--backend", "shm"], {"COBRE_COMM_BACKEND": "nonsense"}, "shm"),
        ([], {"COBRE_COMM_BACKEND": "tcp", "COBRE_JOB_ID": "of-an-outer-job"}, "shm"),
        ([], {"COBRE_TEST_PRETEND_NODES": "0,1,2"}, "shm"),
    ],
)
def test_the_option_or_else_the_variable_decides_the_backend(
    option, variables, chosen, monkeypatch
):
    jobs = []
    monkeypatch.setattr("cobre_comm.run.one_machine.run_job", lambda job, *_: jobs.append(job) or 0)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert run(["-n", "2", *option, ACT]) == 0
    assert [job.backend for job in jobs] == [chosen]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("job.sh", "#!/bin/bash\necho hello world\n", "is a script for /bin/bash, not of Python"),
        ("job", "#!/usr/bin/env -S bash -l\nsrun hostname\n", "env -S bash -l, not of Python"),
        ("plain.sh", "echo hello world\n", "the shell script call `cobre-comm run`"),
        ("a.ipynb", "{}", "is a notebook; make a script of it by `jupyter nbconvert --to script"),
        ("a.out", "\x7fELF", "is machine code; ranks are Python programs"),
    ],
)
def test_programs_of_other_languages_are_refused(name, text, said, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(said)):
        program_of(None, [str(path)])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        # the first lines that pip writes
        ("tool", "#!/bin/sh\n'''exec' python \"$0\" \"$@\"\n' '''\nprint(1)\n"),
        ("tool", "#!/usr/bin/env python3\nprint(\n"),  # Python reports this error
        ("wrong.py", "print(\n"),
        ("good.sh", "print(1)\n"),
    ],
)
def test_programs_of_python_are_run_under_any_name(name, text, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    assert program_of(None, [str(path)]) == [str(path)]


@pytest.fixture
def activated(monkeypatch):
    """Let the programs of this virtual environment come first on PATH, as in a user's shell."""
    here = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{here}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.parametrize(
    "words",
    [
        ["-n", "2", "python", ACT],
        ["-np", "2", "python3", ACT],
        ["-n2", "python", "-u", ACT],
        ["-n=2", sys.executable, ACT],
        ["-n", "2", "--", "python", ACT],
        ["-n", "2", "python", "-m", "tests.launch.programs.act"],
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("activated")
def test_launch_lines_of_mpiexec_run_as_they_mean(words):
    done = cobre("run", *words, "lines", "1")
    assert done.returncode == 0, done.stderr
    assert lines_of(done.stdout, 0) == ["rank 0 line 0 "]
    assert lines_of(done.stdout, 1) == ["rank 1 line 0 "]


def test_another_python_is_refused(tmp_path, refusal):
    """A program has the name of Python, but runs in another environment."""
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\necho '(3, 11, 0) /elsewhere'\n")
    other.chmod(0o755)
    said = refusal(["run", "-n", "2", str(other), ACT])
    assert f"ranks run in the Python of this launcher, {sys.executable}" in said
    assert f"start the launcher by `{other} -m cobre_comm run`" in said


@pytest.mark.parametrize("words", [["explain", "prange"], ["explain"], ["--help"]], ids=" ".join)
def test_a_command_whose_reader_has_gone_ends_quietly(words):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as nobody:
        done = subprocess.run(
            [sys.executable, "-m", "cobre_comm", *words],
            stdout=nobody, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


def test_version_and_help():
    assert cobre("--version").stdout == f"cobre-comm {cobre_comm.__version__}\n"
    said = cobre("--help").stdout
    for command, (_, what) in cli.COMMANDS.items():
        assert re.search(rf"  {command} +{what}\n", said)


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help_says_what_a_command_does_with_examples(command, capsys):
    with pytest.raises(SystemExit):
        cli.main([command, "--help"])
    said = capsys.readouterr().out
    assert said.startswith(f"usage: cobre-comm {command} ")
    _, description, *_ = said.split("\n\n")
    assert len(description) > 60
    assert f"examples:\n  cobre-comm {command} " in said
    assert "\nexit code: 0 " in said
    assert max(map(len, said.splitlines())) <= 100


@pytest.mark.parametrize("separator", [[], ["--"]])
def test_arguments_of_the_script_are_its_own(separator, written):
    words = ["-n", "5", "--timeout", "x", "-m", "--", "--help"]
    done = cobre("run", "-n", 1, *separator, written("import sys; print(sys.argv[1:])"), *words)
    assert done.stdout == f"{words}\n"


def test_a_module_may_be_found_by_any_finder(monkeypatch):
    """A package that setuptools has installed as editable has a finder of its own."""

    class Finder:
        @staticmethod
        def find_spec(name, path, target=None):
            return name if name == "flow_model" else None

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    check_module("flow_model.train")
    with pytest.raises(ValueError, match=r"^there is no module 'flow_models'$"):
        check_module("flow_models")


def test_where_mpi4py_is_missing_the_option_that_lends_ours_is_named(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(ValueError, match=r"^there is no module 'mpi4py.run'; --as-mpi4py lends"):
        check_module("mpi4py.run")
