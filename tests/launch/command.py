"""Run ``cobre-comm`` in tests, with a deadline, and watch the processes that it starts."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import psutil

from cobre_comm.testing.cases.waiting import wait_until
from tests.command import run

PROGRAMS = pathlib.Path(__file__).parent / "programs"
EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
DEADLINE_S = 100
# The limit for ranks to end, which takes a moment on a quiet machine. Ranks that nothing ends stay
# for a minute.
SOON_S = 50
# Options of jobs that a test inspects from outside, because that takes long on a busy machine.
PATIENT = ("--timeout", 2 * DEADLINE_S)
COMMAND = [sys.executable, "-m", "cobre_comm"]


def environment(**extra):
    """Return the environment of the tests, without variables about ranks and threads."""
    ours = ("COBRE_", "PMI_", "OMPI_", "SLURM_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {k: v for k, v in kept.items() if not k.endswith("_NUM_THREADS")} | extra


def cobre(*words, stdin="", before=COMMAND, within_s=DEADLINE_S, cwd=None, **extra):
    """Run a command to its end; return the completed process."""
    told = {"input": stdin, "within_s": within_s, "cwd": cwd, "env": environment(**extra)}
    return run(*before, *map(str, words), code=None, **told)


def at_once(command, environments, **told):
    """Run a command once in each environment, all at once; return the completed processes."""
    with ThreadPoolExecutor(len(environments)) as pool:
        return list(pool.map(lambda each: cobre(before=command, **told, **each), environments))


def lines_of(text, rank):
    """Return the lines of one rank, without their prefix."""
    return [
        line[len(f"[{rank}] ") :] for line in text.splitlines() if line.startswith(f"[{rank}] ")
    ]


def _runs(process):
    """Whether a process runs; an orphan that process 1 has not reaped yet does not run."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Running:
    """A launcher in the background; when the test is over, all processes of the launcher are gone.

    ``elsewhere``: the ranks print pids of another namespace, which name other processes here.
    """

    def __init__(self, *words, before=COMMAND, extra=None, elsewhere=False):
        self._elsewhere = elsewhere
        words = [str(word) for word in words]
        self.process = subprocess.Popen([*before, *words], stdin=subprocess.DEVNULL, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=environment(**(extra or {})))  # fmt: skip
        self.started = []
        self.output = ""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for process in [*self.started, self.process]:
            with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
                process.kill()
        self.process.communicate()

    def wait_ready(self, ranks):
        """Wait until these ranks have written ``ready RANK PID...``; return their pids by rank."""
        pids = {}
        while len(pids) < ranks:
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read()
            self.output += line
            if found := re.search(r"ready (\d+) (.*)", line):
                pids[int(found[1])] = [int(word) for word in found[2].split()]
        told = [] if self._elsewhere else [pid for known in pids.values() for pid in known]
        for pid in told:
            with contextlib.suppress(psutil.NoSuchProcess):  # the process may have ended meanwhile
                self.started.append(psutil.Process(pid))
        self.started += psutil.Process(self.process.pid).children(recursive=True)
        return pids

    def wait_for(self, word, times):
        """Wait until ``times`` lines with ``word`` have been read."""
        while times:
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read()
            self.output += line
            times -= word in line

    def finish(self, within_s=DEADLINE_S):
        """Wait for the end; return the exit status, stdout and stderr."""
        output, errors = self.process.communicate(timeout=within_s)
        return self.process.returncode, self.output + output, errors

    def survivors(self):
        """Return the processes that have been seen, and that do not end."""
        wait_until(lambda: not any(map(_runs, self.started)))
        return [process for process in self.started if _runs(process)]
