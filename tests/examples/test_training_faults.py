"""A rank or the launcher is killed, or Ctrl-C comes, amid training: every process ends."""

import signal
from pathlib import Path

import psutil
import pytest

from tests.grid import some
from tests.launch.command import EXAMPLES, SOON_S, Running

TRAIN = EXAMPLES / "sddp" / "train.py"
CASE = EXAMPLES / "sddp" / "cases" / "gen_h8_t12_k10.json"
FIFTH_ITERATION = "[0]         5 "
RANKS = 4
LAUNCHER = -1


def names_in_shared_memory():
    return set(Path("/dev/shm").glob("cobre-*"))  # other programs come and go


def ranks_of(processes):
    """Return the processes of the ranks, by number."""
    found = {}
    for process in processes:
        rank = process.environ().get("COBRE_SHM_RANK")
        if rank is not None and TRAIN.name in " ".join(process.cmdline()):
            found[int(rank)] = process
    return found


# Who gets which signal, how the launcher ends, and what it says.
KILLED = 128 + signal.SIGKILL
ENDS = [
    (0, signal.SIGKILL, KILLED, "rank 0 was ended by signal 9 (SIGKILL)"),
    (LAUNCHER, signal.SIGINT, 128 + signal.SIGINT, ""),
    (3, signal.SIGKILL, KILLED, "rank 3 was ended by signal 9 (SIGKILL)"),
    (LAUNCHER, signal.SIGKILL, -signal.SIGKILL, ""),
]


@pytest.mark.parametrize(("whom", "number", "code", "last"), some(ENDS[:2], ENDS))
def test_all_end(whom, number, code, last):
    before = names_in_shared_memory()
    with Running("run", "-n", RANKS, "--backend", "shm", TRAIN, CASE) as job:
        iterating = any(line.startswith(FIFTH_ITERATION) for line in job.process.stdout)
        assert iterating, job.process.stderr.read()
        job.started = psutil.Process(job.process.pid).children(recursive=True)
        ranks = ranks_of(job.started)
        assert sorted(ranks) == list(range(RANKS))
        ranks.get(whom, job.process).send_signal(number)
        ended, _, errors = job.finish(SOON_S)
        assert ended == code
        assert last in errors
        assert "Traceback" not in errors or number == signal.SIGKILL
        assert job.survivors() == []
    assert names_in_shared_memory() <= before
