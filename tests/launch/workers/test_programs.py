import ast
import pathlib
import signal
import sys

import pytest

from tests.command import python
from tests.launch.command import Running, environment

FOLDER = str(pathlib.Path.cwd())
PROGRAM = [sys.executable, "-m", "tests.launch.programs.launches"]


def run_here(*words, code=0, text=None):
    return python(*words, code=code, input=text, env=environment(PYTHONPATH=FOLDER))


def test_a_script_without_guard_is_told_so():
    done = run_here(*PROGRAM[1:], "unguarded", code=1)
    assert 'put the call of launch under if __name__ == "__main__":' in done.stderr
    assert "WorkerError" in done.stderr.splitlines()[-1]
    assert "resource_tracker" not in done.stderr


EXITS = """
import sys
from cobre_comm import launch
def fn(comm): return comm.sum(1)
if __name__ == "__main__":
    print("values:", launch(fn, 2).values)
sys.exit(0)
"""


def test_a_script_that_exits_while_workers_import_it_has_no_values(tmp_path):
    (tmp_path / "exits.py").write_text(EXITS)
    done = run_here(str(tmp_path / "exits.py"), code=1)
    assert "values" not in done.stdout
    assert "raised SystemExit: 0; the function has not returned a value" in done.stderr


LINES = """
from cobre_comm import launch

def write(comm, lines):
    for i in range(lines):
        print("rank", comm.rank, "of", comm.size, "line", i)

if __name__ == "__main__":
    launch(write, 2, args=(500,))
"""


def test_lines_of_ranks_stay_whole(tmp_path):
    (tmp_path / "lines.py").write_text(LINES)
    done = run_here(str(tmp_path / "lines.py"))
    expected = [f"rank {rank} of 2 line {i}" for rank in range(2) for i in range(500)]
    assert sorted(done.stdout.splitlines()) == sorted(expected)


REAPS = """
import os, signal, sys
from cobre_comm import launch

def work(comm, how):
    total = comm.sum(comm.rank + 1)
    if comm.rank == 1 and how == "fail":
        os._exit(3)
    if comm.rank == 1 and how == "raise":
        raise ValueError("no such case")
    comm.barrier()
    return total

def reap(*_):
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass

if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN if sys.argv[1] == "ignored" else reap)
    print(launch(work, 2, args=(sys.argv[2],)).values)
"""


@pytest.mark.parametrize("reaper", ["ignored", "handler"])
@pytest.mark.parametrize("how", ["well", "fail", "raise"])
def test_workers_that_somebody_else_reaps(reaper, how, tmp_path):
    (tmp_path / "reaps.py").write_text(REAPS)
    done = run_here(str(tmp_path / "reaps.py"), reaper, how, code=int(how != "well"))
    assert done.stdout == ("[3, 3]\n" if how == "well" else "")
    assert "ChildProcessError" not in done.stderr
    if how == "raise":
        assert "rank 1 raised ValueError: no such case" in done.stderr
    if how == "fail":  # if the handler is too late to reap rank 1, the exit code is known
        lost = "rank 1 ended before it had sent a value; its exit code is not known"
        assert lost in done.stderr or "rank 1 exited with code 3" in done.stderr


INTERACTIVE = """
import sys
from cobre_comm import launch
class Error(Exception): pass
def f(comm):
    if comm.rank == 1: raise Error("of the notebook")
    comm.barrier()
try:
    launch(f, 2)
except Exception as error:
    print(type(error.inner) is Error, error.inner)
"""


@pytest.mark.parametrize("way", ["-c", "stdin"])
def test_a_function_of_an_interactive_program_goes_by_value(way):
    command, text = (["-c", INTERACTIVE], None) if way == "-c" else ([], INTERACTIVE)
    done = run_here(*command, text=text)
    assert (done.stdout, done.stderr) == ("True of the notebook\n", "")


def test_without_cloudpickle_it_is_refused():
    program = "import sys; sys.modules['cloudpickle'] = None" + INTERACTIVE.replace("try:", "if 1:")
    done = run_here(code=1, text=program.partition("except")[0])
    said, note = done.stderr.splitlines()[-2:]
    assert said.startswith("ValueError: workers cannot import f from a notebook")
    assert "pip install 'cobre-comm[notebook]'" in said
    assert note == "more: cobre-comm explain launch"


def test_launch_works_in_whatever_order_names_are_imported():
    program = (
        "from cobre_comm import report_progress\nimport cobre_comm.launching.launch\n"
        "from tests.launch.workers.bodies import add\nfrom cobre_comm import launch\n"
        "print(launch(add, 1, args=(2,)).value)\n"
    )
    assert run_here("-W", "error", "-c", program).stdout == "2.0\n"


SLOW_START = """
import os, time
if "COBRE_SHM_RANK" in os.environ:
    os.write(1, b"ready %s %d\\n" % (os.environb[b"COBRE_SHM_RANK"], os.getpid()))
    time.sleep(0.5)
"""


@pytest.fixture(params=["they work", "they start"])
def launching(request, tmp_path):
    if request.param == "they start":
        (tmp_path / "sitecustomize.py").write_text(SLOW_START)
    extra = {"PYTHONPATH": f"{tmp_path}:{FOLDER}"}
    with Running("sleep", before=PROGRAM, extra=extra) as job:
        job.wait_ready(2)
        yield job


def test_ctrl_c_in_the_parent_ends_all_with_one_line(launching):
    launching.process.send_signal(signal.SIGINT)
    code, _, errors = launching.finish()
    assert code == -signal.SIGINT
    assert errors == "KeyboardInterrupt: launch has ended its 2 ranks\n"
    assert launching.survivors() == []


INTERRUPTED_AT_START = """
import os, signal, threading, time
from pathlib import Path
from cobre_comm import launch
from cobre_comm.launching import launched

def fn(comm): return comm.rank

class Outbox(launched.Outbox):
    made = 0
    def send(self, message):
        super().send(message)
        Outbox.made += 1
        if Outbox.made == 2:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)

def descriptors():
    return len(os.listdir("/proc/self/fd"))

if __name__ == "__main__":
    launched.Outbox = Outbox
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    before = descriptors()
    try:
        launch(fn, 3)
    except KeyboardInterrupt:
        print("raised")
    print("children:", Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text())
    print("more descriptors:", descriptors() - before)
"""


def test_ctrl_c_in_another_thread_while_workers_start_leaves_none(written):
    done = run_here(str(written(INTERRUPTED_AT_START)))
    assert done.stdout == "raised\nchildren: \nmore descriptors: 0\n"


def test_killed_parent_leaves_no_worker(launching):
    launching.process.kill()
    assert launching.survivors() == []


def test_a_signal_to_the_parent_asks_the_workers_to_stop():
    extra = {"PYTHONPATH": FOLDER, "COBRE_COMM_GRACEFUL": "SIGTERM"}
    with Running("ask", before=PROGRAM, extra=extra) as job:
        job.wait_ready(2)
        job.process.send_signal(signal.SIGTERM)
        code, output, errors = job.finish()
    assert (code, errors) == (0, "")
    first, second = ast.literal_eval(output.splitlines()[-1])
    assert first == second > 0
