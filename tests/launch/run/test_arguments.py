import pytest

import cobre_comm
from tests.launch.command import PROGRAMS, cobre

ACT = str(PROGRAMS / "act.py")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "-n", "2", "missing.py"], "cannot open script 'missing.py': No such file"),
        (["run", "-n", "2", str(PROGRAMS)], "is a directory, not a script"),
        (["run", "-n", "2"], "a script is missing"),
        (["run", "-n", "2", "--"], "a script is missing"),
        (["run", "-n", "2", "-m"], "-m needs the name of a module"),
        (["run", "-n", "2", "-m", "no_such_module_here.x"], "no module 'no_such_module_here.x'"),
        (["run", "-n", "0", ACT], "between 1 and 4096, got 0"),
        (["run", "-n", "5000", ACT], "between 1 and 4096, got 5000"),
        (["run", "-n", "x", ACT], "invalid int value: 'x'"),
        (["run", ACT], "required: -n"),
        (["run", "-n", "2", "--backend", "smoke", ACT], "there is no backend 'smoke'"),
        (
            ["run", "-n", "2", "--backend", "mpi", "--nnodes", "2", ACT],
            "MPI's own mpiexec (or srun) starts ranks on several machines",
        ),
        (["run", "-n", "2", "--backend", "local", ACT], "is one process and cannot have 2 ranks"),
        (["run", "-n", "2", "--timeout", "-1", ACT], "0 (no limit) or more seconds, got -1.0"),
        (["run", "-n", "2", "--timeout", "nan", ACT], "0 (no limit) or more seconds, got nan"),
        (["run", "-n", "2", "--bind", "socket", ACT], "invalid choice: 'socket'"),
        (["run", "-n", "2", "--colour", ACT], "unrecognized arguments: --colour"),
        (["walk"], "unknown command 'walk'"),
        ([], "a command is missing"),
    ],
)
def test_bad_arguments_are_one_line_and_status_2(words, said, refusal):
    assert said in refusal(words)


def test_version_and_help():
    assert cobre("--version").stdout == f"cobre-comm {cobre_comm.__version__}\n"
    assert "cobre-comm run -n N" in cobre("--help").stdout
    assert "--backend" in cobre("run", "--help").stdout


@pytest.mark.parametrize("separator", [[], ["--"]])
def test_arguments_of_the_script_are_its_own(separator, tmp_path):
    script = tmp_path / "show.py"
    script.write_text("import sys; print(sys.argv[1:])")
    words = ["-n", "5", "--timeout", "x", "-m", "--", "--help"]
    done = cobre("run", "-n", 1, *separator, script, *words)
    assert done.stdout == f"{words}\n"
