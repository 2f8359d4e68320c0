"""One job that a fault strikes: it is started, struck, awaited, searched for remains, judged."""

import contextlib
import faulthandler
import os
import pathlib
import pickle
import shutil
import signal
import sys
import tempfile
import threading
import time
from typing import NamedTuple

import psutil

from cobre_comm.backends.shm import rendezvous
from cobre_comm.testing import run_ranks_outcomes
from cobre_comm.testing.backend_name import BackendName
from cobre_comm.testing.cases.case import OURS
from cobre_comm.testing.cases.faults.fault import START, told
from cobre_comm.testing.cases.faults.judge import Seen, Verdict
from cobre_comm.testing.cases.faults.struck import codes_of
from cobre_comm.testing.ranks.members import SINGLE_THREADED
from cobre_comm.testing.ranks.surroundings import inherited_environment, rank_environment
from tests import forked
from tests.campaign import outside, surroundings
from tests.campaign.judge import START_S, judge
from tests.campaign.rank import launching
from tests.campaign.work import work

ROOT = pathlib.Path(__file__).parents[2]
DEADLINE_S = 300.0  # MPI between nodes takes its time on a busy machine
TICK_S = 0.02
TAIL = 3000  # characters of a log that are kept


class Result(NamedTuple):
    """The result of a fault."""

    index: int
    fault: object
    verdict: Verdict
    accounts: list
    output: str
    took_s: float


def perform(index, fault, margin_s):
    """Run the job of a fault, and judge it."""
    began = time.monotonic()
    # This is no TemporaryDirectory, because the ranks, which are forked, would remove it as they
    # exit.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cobre-campaign-"))
    try:
        (folder / "fault").write_bytes(pickle.dumps(fault))
        seen = Job(fault, folder, margin_s).run()
        accounts = [told(folder, rank) for rank in range(fault.size)]
        verdict = judge(fault, accounts, seen)
        output = "".join(f"--- {path.name}\n{path.read_text(errors='replace')[-TAIL:]}"
                         for path in sorted(folder.glob("out*")))  # fmt: skip
        output += f"--- {seen}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Result(index, fault, verdict, accounts, output, time.monotonic() - began)


class Job:
    """The processes of one job."""

    def __init__(self, fault, folder, margin_s):
        self.fault, self.folder, self.margin_s = fault, folder, margin_s
        name = BackendName.parse(fault.backend)
        self.kind = name.kind
        self.env = {
            **name.environment(), **fault.env, **SINGLE_THREADED,
            **OURS.timeout_of(fault.limit_s),
            "TMPDIR": str(folder),
        }  # fmt: skip
        if fault.moment == START:
            self.env["COBRE_TCP_CONNECT_TIMEOUT_MS"] = str(int(START_S * 1000))
        self.lateness = 0.0
        self.overdue = False
        self.helpers = []

    def run(self):
        before = surroundings.names()
        codes, launcher = self._start()
        patience_s = surroundings.PATIENCE_S + self.margin_s
        left = surroundings.await_no_children(self._known_children(), patience_s)
        new = surroundings.names() - before
        for name in new:
            (surroundings.SHM / name).unlink()
        return Seen(
            exit_codes=tuple(codes), margin_s=self.margin_s + 4 * self.lateness,
            names=tuple(sorted(self._not_allowed(new))), processes=left, launcher=launcher,
            launcher_text=self._text("out.launcher"), overdue=self.overdue,
            timeout_variable=OURS.timeout_variable(self.fault.backend),
        )  # fmt: skip

    def _not_allowed(self, names):
        """Return names in /dev/shm that must not be left; a strike at the start may leave one."""
        fault = self.fault
        may = fault.moment == START and fault.victim == 0 and fault.start == "hand"
        return set() if may and len(names) == 1 else names

    def _known_children(self):
        facts = [told(self.folder, rank) for rank in range(self.fault.size)]
        pids = [
            p
            for fact in facts
            for key in ("children", "orphans", "programs")
            for p in fact.get(key, ())
        ]
        mine = {each.pid for each in psutil.Process().children()}
        return [pid for pid in [*pids, *self.helpers] if pid in mine]

    def _start(self):
        """Start the job; return the exit codes of its ranks and of its launcher."""
        if self.kind == "mpi":
            return self._by_mpiexec(), None
        if self.fault.start == "hand":
            pids = self._by_hand()
            outside.strike(self.fault, self.folder, pids, None)
            return self._await(pids), None
        launcher = self._by_run() if self.fault.start == "run" else self._by_launch()
        outside.strike(self.fault, self.folder, [], launcher)
        [code] = self._await([launcher])
        return [None] * self.fault.size, code

    def _by_hand(self):
        environments = rank_environment(self.fault.backend, self.fault.size)
        if self.fault.kind == "unauthenticated":
            port, token = (environments[0][f"COBRE_TCP_{name}"] for name in ("PORT", "TOKEN"))
            self.helpers.append(
                self._fork("visitor", {}, lambda: outside.visit(self.fault, int(port), token))
            )
        return [self._fork(str(rank), environment, lambda rank=rank: self._be_rank(rank))
                for rank, environment in enumerate(environments)]  # fmt: skip

    def _be_rank(self, rank):
        rendezvous.START_TIMEOUT_S = START_S
        work(None, self.fault.caller, self.fault, str(self.folder), rank)

    def _by_run(self):
        survive = ["--survive"] if self.fault.kind == "killed_early" else []
        command = [sys.executable, "-m", "cobre_comm", "run", "-n", str(self.fault.size), *survive,
                   "--backend", self.kind, "--timeout", str(self.fault.limit_s),
                   "-m", "tests.campaign.rank", str(self.folder)]  # fmt: skip
        return self._fork("launcher", self.env, lambda: self._become(command))

    def _become(self, command):
        if self.fault.kind == "full_stdout":
            os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
        os.execve(command[0], command, {**inherited_environment(), **self.env})

    def _by_launch(self):
        return self._fork("launcher", {}, lambda: sys.exit(launching(str(self.folder))))

    def _fork(self, name, environment, do):
        """Fork a process that has its own log, environment and session; return its pid."""

        def be():
            _become_alone(self.folder / f"out.{name}")
            os.environ.update({**self.env, **environment})
            return forked.exit_code(do)

        return forked.start(be)

    def _by_mpiexec(self):
        fault = self.fault
        striker = threading.Thread(target=outside.strike, args=(fault, self.folder, [], None))
        striker.start()
        # Open MPI's mpiexec may end at once, because its listener "failed to start": try again.
        for _ in range(2):
            outcomes = run_ranks_outcomes(
                fault.backend, fault.size, work, fault.caller, fault, str(self.folder),
                connect=fault.moment != START, env=self.env, timeout_s=DEADLINE_S,
            )  # fmt: skip
            if any(told(self.folder, rank) for rank in range(fault.size)):
                break
        striker.join()
        self.overdue = any(outcome.timed_out for outcome in outcomes)
        for outcome in outcomes:
            if not outcome.ok:
                (self.folder / f"out.{outcome.rank}").write_text(outcome.describe())
        return codes_of(outcomes)

    def _await(self, pids):
        """Return the exit codes of processes; None for each process that had to be killed."""
        codes, deadline = dict.fromkeys(pids), time.monotonic() + DEADLINE_S
        running = set(pids)
        while running and time.monotonic() < deadline:
            before = time.monotonic()
            time.sleep(TICK_S)
            self.lateness = max(self.lateness, time.monotonic() - before - TICK_S)
            for pid in tuple(running):
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    running.remove(pid)
                    codes[pid] = os.waitstatus_to_exitcode(status)
        self.overdue = bool(running)
        for number, pause_s in ((signal.SIGUSR1, 0.3), (signal.SIGKILL, 0.0)):
            for pid in running:
                os.kill(pid, number)
            time.sleep(pause_s if running else 0.0)
        for pid in running:
            os.waitpid(pid, 0)
        return list(codes.values())

    def _text(self, name):
        with contextlib.suppress(OSError):
            return (self.folder / name).read_text(errors="replace")[-TAIL:]
        return ""


def _become_alone(path):
    """Give up what belongs to the process that forked this one, and write to a file."""
    out = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    forked.become_alone(os.open(os.devnull, os.O_RDONLY), out, out)
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    os.chdir(ROOT)
