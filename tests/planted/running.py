"""Runs of the conformance suite on a backend with planted faults, as a backend's author runs it."""

import importlib.util
import os
import pathlib
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from tests.command import python

SITE = pathlib.Path(__file__).parent / "site"
SUITE = "planted/suite.py"
NO_FAULT = ""
ALL_PASSED, SOME_FAILED, NONE_CHOSEN = 0, 1, 5  # pytest's exit codes
OF_CI = "not slowest"
# each run, and the marks of its tests
RUNS = {"make quick": "quick", "make test": "not slow", "CI": OF_CI}


@dataclass
class Tally:
    """The names of those instances of one test function that passed, and of those that failed."""

    passed: list = field(default_factory=list)
    failed: list = field(default_factory=list)


def environment(first=""):
    """Return an environment in which the distribution with the planted faults is installed.

    The packages of the folder ``first`` come before all others.
    """
    path = os.pathsep.join(filter(None, [str(first), str(SITE), os.environ.get("PYTHONPATH")]))
    ours = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "PLANTED_"))}
    return {**ours, "PYTHONPATH": path}


def compile_faults(names, timeout_s):
    """Compile the faulty kernels into numba's cache, two of them at a time."""

    def compile_some(some):
        python("-m", "planted.warm", *some, env=environment(), within_s=timeout_s)

    first, *others = names or [NO_FAULT]  # the first fault compiles what all faults share
    compile_some([first])
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(compile_some, filter(None, (others[::2], others[1::2]))))


def make_sources(names):
    """Make the sources of the faulty kernels; an error names a patch that no longer fits."""
    code = (
        "import sys; from planted.faults import FAULTS; from planted.mutants import mutant_source\n"
        "for name in sys.argv[1:]: mutant_source(FAULTS[name])"
    )
    python("-c", code, *names, within_s=None, env=environment())


def copy_package(name, folder):
    """Make a copy of the package with one of the faults in PACKAGE_FAULTS."""
    python("-m", "planted.package_copy", name, folder, within_s=None, env=environment())


def run_suite(tests, report, timeout_s, first="", marks=OF_CI):
    """Run tests by name, such as ``TestNone::TestBarrier``; return a Tally for each test function.

    ``marks`` chooses the trials: by default those of CI. Whether a test passes is for the caller to
    judge. The marks of CI must choose some of the tests; those of a shorter run may choose none.
    """
    words = [
        *("-m", "pytest", "-q", "--tb=line", "-m", marks),
        *("-c", "pytest.ini", "--rootdir", ".", "--confcutdir", "."),
        *(f"--junitxml={report}", *(f"{SUITE}::{test}" for test in tests)),
    ]
    env = {**environment(first), "HYPOTHESIS_STORAGE_DIRECTORY": str(report.parent)}
    done = python(*words, code=None, cwd=SITE, env=env, within_s=timeout_s)
    codes = (ALL_PASSED, SOME_FAILED, *[NONE_CHOSEN] * (marks != OF_CI))
    assert done.returncode in codes, done.stdout[-3000:] + done.stderr[-3000:]
    return read_report(report)


def read_report(report):
    """Return a Tally for each function, such as ``TestNone::TestBarrier::test_three_in_a_row``."""
    tallies = {}
    for case in ElementTree.parse(report).iter("testcase"):
        classes = [part for part in case.get("classname").split(".") if part.startswith("Test")]
        name = case.get("name")
        tally = tallies.setdefault("::".join([*classes, name.partition("[")[0]]), Tally())
        if case.find("failure") is not None or case.find("error") is not None:
            tally.failed.append(name)
        elif case.find("skipped") is None:
            tally.passed.append(name)
    return tallies


def load_faults():
    """Return the module that has the faults by their names.

    The module is loaded from its file. To import it as ``planted.faults``, this process would need
    the folder of that package on its path, and other tests would then find one more backend.
    """
    spec = importlib.util.spec_from_file_location("planted_faults", SITE / "planted" / "faults.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
