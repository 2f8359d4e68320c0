"""One training that loses ranks: its launchers, the strikes against ranks, and its outcome."""

import contextlib
import json
import random
import re
import secrets
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from cobre_comm.check.sddp import train
from cobre_comm.processes.port import ReservedPort
from tests.launch.command import environment

EXAMPLE = Path(__file__).parents[2] / "examples/sddp"
CASE = EXAMPLE / "cases/gen_h8_t12_k10.json"
ITERATIONS = 30
RANKS = 4
LONGEST_S = 600.0
WITHIN_S = 0.1  # after a line of output, a strike comes within this time

# For each way: the launcher's options, the program's options, and the number of launchers.
WAYS = {
    "survive": (["--survive"], ["--survive"], 1),
    "survive-tcp": (["--survive"], ["--survive"], 2),
    "restart": (["--max-restarts", "5"], [], 1),
}


@dataclass
class Outcome:
    """The outcome of a training."""

    struck: int = 0  # how many ranks were struck
    code: int = -1
    cuts_sha256: str = ""
    # the seconds from each loss to the next collective
    delays_s: list[float] = field(default_factory=list)
    said: str = ""


class Training:
    """A training of ``RANKS`` ranks, whose launchers stand for machines.

    Rank 0 prints a line for each communicator, after the first collectives on it. So the time from
    a strike to the next such line has the whole recovery in it.
    """

    def __init__(self, way, folder, seed):
        self._launcher_words, self._words, self._nodes = WAYS[way]
        self._folder, self._random = Path(folder), random.Random(seed)
        self._token, self._lines, self._launchers = secrets.token_hex(16), [], []
        self._last_strike = 0.0
        self.outcome = Outcome()

    def _start(self, node):
        words = ["-n", str(RANKS // self._nodes), *self._launcher_words]
        if self._nodes > 1:
            words += ["--nnodes", str(self._nodes), "--node-rank", str(node)]
            words += ["--coordinator", f"127.0.0.1:{self._port}"]
        program = [EXAMPLE / "train.py", CASE, "--iterations", ITERATIONS, *self._words]
        program += ["--out", self._folder / "result.json"]
        if not self._words:
            program += ["--checkpoint", self._folder / "cuts", "--checkpoint-every", 5]
        process = subprocess.Popen(
            [sys.executable, "-m", "cobre_comm", "run", *words, *map(str, program)],
            env=environment(COBRE_TCP_TOKEN=self._token, COBRE_TCP_TIMEOUT_SECS="60"),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        reader = threading.Thread(target=self._read, args=(process,), daemon=True)
        reader.start()
        self._launchers.append((process, reader))

    def _read(self, process):
        with process.stdout as output:
            for line in output:
                self._lines.append(line)
                if "openings; backend" in line and self._last_strike:
                    self.outcome.delays_s.append(time.monotonic() - self._last_strike)
                    self._last_strike = 0.0

    def run(self, times):
        """Train, and strike a rank ``times`` times; return the outcome."""
        with ReservedPort() as reserved:
            self._port = reserved.port
            for node in range(self._nodes):
                self._start(node)
            try:
                for after in sorted(self._random.choices(range(1, 10), k=times)):
                    self._strike_after(after)
                self._wait()
            finally:
                for process, reader in self._launchers:
                    process.kill()
                    process.wait()
                    reader.join()
        self.outcome.said = "".join(self._lines)
        return self.outcome

    def _strike_after(self, iterations):
        """Strike a rank, a moment after rank 0 has printed the lines of so many iterations."""
        until = time.monotonic() + LONGEST_S
        while time.monotonic() < until and self._runs():
            if sum(bool(re.match(r"\[\d\] +\d+ ", line)) for line in [*self._lines]) >= iterations:
                break
            time.sleep(0.002)
        time.sleep(self._random.uniform(0, WITHIN_S))
        if not self._runs():
            return
        if ranks := self._ranks():
            self._last_strike = time.monotonic()
            self._random.choice(ranks).kill()
            self.outcome.struck += 1

    def _runs(self):
        return self._launchers[0][0].poll() is None

    def _ranks(self):
        """Return the live ranks."""
        launchers = [launcher for launcher, _ in self._launchers if launcher.poll() is None]
        return [rank for launcher in launchers for rank in ranks_of(launcher.pid)]

    def _wait(self):
        until = time.monotonic() + LONGEST_S
        for process, _ in self._launchers:
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                return
        codes = [process.returncode for process, _ in self._launchers]
        self.outcome.code = min(codes) if "--survive" in self._words else max(codes)
        result = self._folder / "result.json"
        if result.exists():
            self.outcome.cuts_sha256 = json.loads(result.read_text())["cuts_sha256"]


def ranks_of(launcher):
    """Return the live ranks of a launcher."""
    found = []
    for process in psutil.Process(launcher).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # a zombie has no command line
            found += [process] * any(word.endswith("train.py") for word in process.cmdline())
    return found


def undisturbed():
    """Return the digest of the cuts of a training that has no rank to lose."""
    return train("local", 1, CASE, ("--iterations", str(ITERATIONS)), LONGEST_S)["cuts_sha256"]
