"""The common part of all places: rows of a table, tools, a scratch folder, commands."""

import contextlib
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parents[1]
HELLO = ROOT / "examples" / "hello_ranks.py"
PROGRAMS = ROOT / "places" / "programs"
STEPS = PROGRAMS / "steps.py"
TRAIN = ROOT / "examples" / "sddp" / "train.py"
CASE = ROOT / "examples" / "sddp" / "cases" / "fast_hydro_thermal_2.json"
_TOOL_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
_OURS = ("COBRE_", "PMI_", "OMPI_", "SLURM_")
SHOWN = 300  # the most characters shown of the output of a failed job


class Missing(Exception):
    """This machine cannot have a place; the message names in one line what is missing."""


class Row(NamedTuple):
    """A row of the table: one trial, its command, and what was seen."""

    what: str
    command: str
    seen: str
    seconds: float
    good: bool


class Failed(Exception):
    """A job had a wrong outcome; the message says what was seen."""


class Done(NamedTuple):
    """A command that has ended, with its exit code and its output."""

    code: int
    output: str


class Place:
    """One place, with the rows of its table until now."""

    def __init__(self, name):
        self.name = name
        self.versions = ""
        self.rows = []
        self._start = time.monotonic()

    @property
    def seconds(self):
        """Seconds since the place began, set-up included."""
        return time.monotonic() - self._start

    @contextlib.contextmanager
    def row(self, what, command):
        """Time one row; the body appends notes to the yielded list, or raises Failed."""
        start, seen = time.monotonic(), []
        good = False
        try:
            yield seen
            good = True
        except Failed as failure:
            seen.append(str(failure))
        except subprocess.TimeoutExpired as late:
            seen.append(f"not ended after {late.timeout:.0f} s")
        row = Row(what, command, "; ".join(seen), round(time.monotonic() - start, 1), good)
        self.rows.append(row)
        print(f"{'ok  ' if good else 'FAIL'} {row.seconds:6.1f} s  {what}: {row.seen}", flush=True)


def tool(name, package):
    """Return the path of a program; raise Missing with its Debian package if there is none."""
    path = shutil.which(name, path=_TOOL_PATH)
    if path is None:
        raise Missing(f"{name} is missing: apt-get install {package}")
    return path


def need_root():
    """Raise Missing unless the user is root."""
    if os.getuid() != 0:
        raise Missing("namespaces of several hosts need root: sudo make ...")


def environment(**extra):
    """Return this process's variables with a longer PATH, and without those about ranks."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    path = os.pathsep.join([str(pathlib.Path(sys.executable).parent), _TOOL_PATH])
    return kept | {"PATH": path} | extra


@contextlib.contextmanager
def begun(*words, cwd=None, **extra):
    """Start a command, with stdout and stderr in one pipe.

    If the body raises, kill the process group of the command.
    """
    command = [str(word) for word in words]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, env=environment(**extra), cwd=cwd, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            yield process
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise


def run(*words, within_s=120, cwd=None, **extra):
    """Run a command to its end; kill its process group if it takes longer than ``within_s``."""
    with begun(*words, cwd=cwd, **extra) as process:
        output, _ = process.communicate(timeout=within_s)
    return Done(process.returncode, output)


def expect(condition, done):
    """Raise Failed with the end of a command's output, unless the condition holds."""
    if not condition:
        raise Failed(f"exit code {done.code}: {' / '.join(done.output.split(chr(10)))[-SHOWN:]}")


def all_met(done, ranks, backend):
    """Return a note that so many ranks have met and added up their numbers; else raise Failed."""
    for rank in range(ranks):
        expect(f"hello from rank {rank} of {ranks} on {backend}" in done.output, done)
    total = ranks * (ranks - 1) // 2
    expect(
        done.code == 0 and f"{ranks} ranks, whose numbers add up to {total}" in done.output, done
    )
    return f"{ranks} ranks on {backend} met"


@functools.cache
def hash_here():
    """Return the hash of the cuts that the example trains on one rank of this machine."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "result.json"
        words = sys.executable, TRAIN, CASE, "--quiet", "--iterations", 20, "--out", out
        done = run(*words, within_s=400)
        expect(done.code == 0, done)
        return json.loads(out.read_text())["cuts_sha256"]


def same_hash(found):
    """Return the beginning of a hash; raise Failed if it is not the hash of one rank here."""
    if found != hash_here():
        raise Failed(f"{found[:12]}, but one rank here has {hash_here()[:12]}")
    return f"{found[:12]}, as on one rank without this"


def trained(start, out):
    """Train the example by ``start(*words)``; return its hash's beginning, or raise Failed."""
    done = start(TRAIN, CASE, "--quiet", "--iterations", 20, "--out", out)
    expect(done.code == 0, done)
    return same_hash(json.loads(out.read_text())["cuts_sha256"])


def kill_one(words, ranks, within_s=60, **extra):
    """Start ranks that take steps, and kill the one started last; return how all others ended."""
    name = f"{STEPS} 600.{os.getpid()}"
    with subprocess.Popen(
        [str(word) for word in (*words, *name.split())], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(**extra),
        start_new_session=True,
    ) as job:  # fmt: skip
        said = ""
        try:
            while len(re.findall(r"rank \d+ of \d+ on ", said)) < ranks:
                line = job.stdout.readline()
                if not line:
                    raise Failed(f"the job ended before its ranks met: {said[-SHOWN:]}")
                said += line
            run("kill", "-9", run("pgrep", "-n", "-f", name).output.strip())
            start = time.monotonic()
            said += job.communicate(timeout=within_s)[0]
            took = time.monotonic() - start
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
    raised = re.findall(r"rank \d+ raised \w+: ranks \([^)]*\)", said)
    wait_until(lambda: not run("pgrep", "-f", name).output, 20, "end of all ranks")
    if job.returncode == 0:
        raise Failed(f"exit code 0: {said[-SHOWN:]}")
    return f"{'; '.join(sorted(raised))}; code {job.returncode} after {took:.1f} s, nothing left"


def wait_until(condition, within_s, what):
    """Wait until a condition holds; raise Failed after ``within_s`` seconds."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            raise Failed(f"{what} not within {within_s} s")
        time.sleep(0.1)


@contextlib.contextmanager
def scratch(name, under=None):
    """Yield a folder that every user can enter, and remove the folder afterwards.

    If ``under`` is given, the folder is made in it, and is not removed.
    """
    if under is not None:
        folder = pathlib.Path(under).resolve() / name
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"cobre-place-{name}-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
