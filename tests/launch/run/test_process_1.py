"""A launcher that is process 1, as in a container without an init process."""

import signal

import pytest

from tests.command import run
from tests.launch.command import COMMAND, EXAMPLES, PROGRAMS, SOON_S, Running, cobre

NAMESPACE = [
    "unshare",
    "--user",
    "--map-root-user",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
]


@pytest.fixture(scope="module", autouse=True)
def process_1():
    try:
        said = run(*NAMESPACE, "sh", "-c", "echo $$", code=None)
    except FileNotFoundError:
        pytest.skip("unshare is not installed")
    if said.stdout != "1\n":
        pytest.skip(f"no namespace of processes here: {said.stderr.strip()}")


def test_status_of_a_rank_that_fails():
    done = cobre("run", "-n", 2, PROGRAMS / "act.py", "exit", 1, before=[*NAMESPACE, *COMMAND])
    assert done.returncode == 3, done


def test_a_signal_to_process_1_ends_the_ranks():
    before = [*NAMESPACE, "sh", "-c", 'echo "$$" && exec "$@"', "sh", *COMMAND]
    with Running(
        "run", "-n", 2, PROGRAMS / "act.py", "sleep", before=before, elsewhere=True
    ) as job:
        job.wait_ready(2)
        (launcher,) = (p for p in job.started if p.ppid() == job.process.pid)
        launcher.send_signal(signal.SIGTERM)
        status, _, errors = job.finish(SOON_S)
    assert (status, "Traceback" in errors) == (143, False), errors


def test_ranks_meet_without_proc():
    hidden = [*NAMESPACE, "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh", *COMMAND]
    done = cobre("run", "-n", 2, "--backend", "tcp", EXAMPLES / "hello_ranks.py", before=hidden)
    assert "2 ranks, whose numbers add up to 1" in done.stdout, done
