import re

import pytest

import cobre_comm
from cobre_comm import cli
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
        (["run", "-n", "x", ACT], "takes a number or auto, got 'x'"),
        (["run", "-np", "4", ACT], "say -n, not -np: cobre-comm run -n 4 script.py\n"),
        (["run", "-np4", ACT], "say -n, not -np: cobre-comm run -n 4 script.py\n"),
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
def test_bad_arguments_are_one_line_and_status_2(words, said, refusal):
    assert said in refusal(words)


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
def test_arguments_of_the_script_are_its_own(separator, tmp_path):
    script = tmp_path / "show.py"
    script.write_text("import sys; print(sys.argv[1:])")
    words = ["-n", "5", "--timeout", "x", "-m", "--", "--help"]
    done = cobre("run", "-n", 1, *separator, script, *words)
    assert done.stdout == f"{words}\n"
