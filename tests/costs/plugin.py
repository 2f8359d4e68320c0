"""A plugin of pytest that measures what each test costs: `-p tests.costs.plugin --costs FILE`.

While tests run, the plugin looks at all processes below pytest's own, ranks of pools included. The
cost of a test is the seconds of CPU that all of these processes have spent during the test.
"""

import contextlib
import json
import os
import pathlib
import resource
import sys
import tempfile
import threading
import time
from collections import Counter

import pytest

from tests.costs.site import compilations

SITE = pathlib.Path(__file__).parent / "site"
LOOK_S = 0.05
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
OWN, SHORT = "pytest", "short-lived"  # kinds of process that are not told by a command line
POOLED = "ranks of tests"
# A process is of the kind of the first of these words that occurs in its command line. If none
# occurs, the process is a program of a test.
KINDS = {
    "cobre_comm.testing.ranks.bodies": POOLED,
    "cobre_comm.processes.guardian": "guardians",
    "mpiexec": "starters of MPI",
    "mpirun": "starters of MPI",
    "prte": "starters of MPI",
    "hydra": "starters of MPI",
    "-m pytest": "pytest within tests",
    "cobre_comm": "launchers",
    "cobre-comm": "launchers",
}


def pytest_addoption(parser):
    parser.addoption("--costs", metavar="FILE", help="write what each test costs")


def pytest_configure(config):
    if config.option.costs and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Book(pathlib.Path(config.option.costs)))
    if config.option.costs and (hasattr(config, "workerinput") or not config.option.numprocesses):
        config.pluginmanager.register(Meter())


def kind_of(pid, own):
    """Return the kind of a process."""
    words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    if words == own:
        return "forks of tests"
    return next((kind for word, kind in KINDS.items() if word in words), "programs of tests")


def below(pid):
    """Yield the children of a process, their children, and so on."""
    with contextlib.suppress(OSError):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from below(child)


def spent(pid):
    """Return the CPU seconds of a process, and those of the children for which it has waited."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system, of_users, of_systems = map(int, fields[11:15])
    return TICK_S * (user + system), TICK_S * (of_users + of_systems)


class Meter:
    """Measures tests, in the process that runs them."""

    def __init__(self):
        self._before = {"ranks": set()}  # what `_now` returned when the present test began
        self._kinds = {}  # the kind of each process below this one, by pid
        self._seen = {}  # the seconds of each of these processes, by pid
        self._stay = {}  # the seconds of live ranks that the present test has started, by pid
        self._costs = Counter()  # seconds by kind, since the start
        self._starts = Counter()
        # seconds of all live processes, and of the children for which they have waited
        self._alive = 0.0
        self._own = pathlib.Path("/proc/self/cmdline").read_bytes().replace(b"\0", b" ").decode()
        descriptor, notes = tempfile.mkstemp(prefix="compilations-")
        os.close(descriptor)
        self._notes = pathlib.Path(notes)
        os.environ[compilations.NOTES] = notes
        sys.path.append(str(SITE))  # ranks of pools get this path; other processes get PYTHONPATH
        os.environ["PYTHONPATH"] = os.pathsep.join(
            filter(None, [str(SITE), os.environ.get("PYTHONPATH")])
        )
        self._lock = threading.Lock()
        threading.Thread(target=self._look_often, daemon=True).start()

    def _look_often(self):
        while True:
            time.sleep(LOOK_S)
            self._look()

    def _look(self):
        with self._lock:
            alive, stay = 0.0, {}
            for pid in [*below(os.getpid())]:
                with contextlib.suppress(OSError):
                    own, waited_for = spent(pid)
                    alive += own + waited_for
                    # A process is counted from its second poll on: at the first poll it may be a
                    # fork that has not yet become another program.
                    if pid in self._kinds and self._kinds[pid] is None:
                        self._kinds[pid] = kind_of(pid, self._own)
                        self._starts[self._kinds[pid]] += 1
                    if kind := self._kinds.setdefault(pid, None):
                        self._costs[kind] += max(0.0, own - self._seen.get(pid, 0.0))
                        self._seen[pid] = own
                    if kind == POOLED and pid not in self._before["ranks"]:
                        stay[pid] = own
            self._alive, self._stay = alive, stay

    def _now(self):
        self._look()
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        own = time.process_time()
        notes = [line.split() for line in self._notes.read_text().splitlines()]
        notes = [(float(seconds), shared == "1") for seconds, shared in notes]
        return {
            "wall": time.monotonic(),
            "all": own + ended.ru_utime + ended.ru_stime + self._alive,
            "costs": Counter({**self._costs, OWN: own}),
            "starts": Counter(self._starts),
            "compiling": sum(seconds for seconds, _ in notes),
            "shared": sum(seconds for seconds, is_shared in notes if is_shared),
            "compilations": len(notes),
            "ranks": {pid for pid, kind in [*self._kinds.items()] if kind == POOLED},
        }

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        self._before = self._now()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if call.when == "teardown":
            before, now = self._before, self._now()
            costs = now["costs"] - before["costs"]
            whole = max(now["all"] - before["all"], costs.total())
            costs[SHORT] = whole - costs.total()
            shared = now["shared"] - before["shared"] + sum(self._stay.values())
            report.user_properties.append((
                "costs",
                {
                    "wall": round(now["wall"] - before["wall"], 3),
                    "cpu": round(whole, 3),
                    # This leaves out what other tests need too: code in caches, and ranks that
                    # stay.
                    "by itself": round(max(0.0, whole - shared), 3),
                    "is_usual": item.get_closest_marker("slow") is None,
                    "compiling": round(now["compiling"] - before["compiling"], 3),
                    "compilations": now["compilations"] - before["compilations"],
                    "of": {kind: round(each, 3) for kind, each in costs.items() if each > 0.001},
                    "starts": dict(now["starts"] - before["starts"]),
                },
            ))  # fmt: skip
        return report

    def pytest_unconfigure(self):
        self._notes.unlink(missing_ok=True)


class Book:
    """Notes what all tests have cost, in the process to which the workers report."""

    def __init__(self, path):
        self._path = path
        self._tests = {}

    def pytest_runtest_logreport(self, report):
        for name, costs in report.user_properties:
            if name == "costs" and report.when == "teardown":
                self._tests[report.nodeid] = costs

    def pytest_sessionfinish(self):
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(self._tests, indent=0, sort_keys=True) + "\n")
