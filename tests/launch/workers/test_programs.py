import pathlib
import signal
import subprocess
import sys

import pytest

from tests.launch.command import DEADLINE_S, Running, environment

FOLDER = str(pathlib.Path.cwd())
PROGRAM = [sys.executable, "-m", "tests.launch.programs.launches"]


def run(command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False,
                          timeout=DEADLINE_S, env=environment(PYTHONPATH=FOLDER))  # fmt: skip


def test_a_script_without_guard_is_told_so():
    done = run([*PROGRAM, "unguarded"])
    assert done.returncode == 1
    assert 'put the call of launch under if __name__ == "__main__":' in done.stderr
    assert "WorkerError" in done.stderr.splitlines()[-1]
    assert "resource_tracker" not in done.stderr


def test_a_function_of_an_interactive_program_is_refused():
    program = "from cobre_comm import launch\ndef f(comm): pass\nlaunch(f, 2)\n"
    for command, text in (([sys.executable, "-c", program], None), ([sys.executable], program)):
        done = run(command, text)
        assert done.returncode == 1
        last = done.stderr.splitlines()[-1]
        assert last.startswith("ValueError: workers cannot import f from a notebook")


def test_launch_works_in_whatever_order_names_are_imported():
    program = (
        "from cobre_comm import report_progress\nimport cobre_comm.launching.launch\n"
        "from tests.launch.bodies import add\nfrom cobre_comm import launch\n"
        "print(launch(add, 1, args=(2,)).value)\n"
    )
    assert run([sys.executable, "-W", "error", "-c", program]).stdout == "2.0\n"


@pytest.fixture
def launching():
    with Running("sleep", before=PROGRAM) as job:
        job.wait_ready(2)
        yield job


def test_ctrl_c_in_the_parent_ends_all_and_propagates(launching):
    launching.process.send_signal(signal.SIGINT)
    code, _, errors = launching.finish()
    assert code == -signal.SIGINT
    assert errors.splitlines()[-1] == "KeyboardInterrupt"
    assert errors.count("Traceback") == 1
    assert launching.survivors() == []


def test_killed_parent_leaves_no_worker(launching):
    launching.process.kill()
    assert launching.survivors() == []
