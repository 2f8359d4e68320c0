"""Write down which run finds which planted fault: `python -m tests.planted`, in some minutes.

For each fault, the tests that should find it run with the trials that each run has. The table is in
README.md.
"""

import pathlib
import tempfile

from tests.planted.catchers import CATCHERS, PACKAGE_CATCHERS, REPOSITORY_CATCHERS
from tests.planted.running import RUNS, compile_faults, copy_package, load_faults, run_suite

LIMIT_S = 3600
PAGE = pathlib.Path(__file__).parent / "README.md"
HEAD = """\
# Which run finds which planted fault

`python -m tests.planted` has looked for each fault with the tests that find it, on two or three
ranks over shared memory, with the trials that each run has. Each fault stands by the shortest run
that finds it. Nine mistakes in other files of the repository are not tried here, because
`test_repository.py` proves that their runs find them: floored-stripe, order-of-two, relaxed-store,
unawaited-writer, unheeding-fold, unheeding-reader, unheeding-writer, wrong-exit-code and
wrong-sentence.
"""


def kernel_faults(faults, marks, folder):
    """Return the names of the faults in kernels that the trials with these marks find."""
    tests = [f"{faults[n].class_name}::{test}" for n, tests in CATCHERS.items() for test in tests]
    tallies = run_suite(tests, folder / "kernels.xml", LIMIT_S, marks=marks)
    return {name for name in faults if any_failed(tallies, faults[name].class_name)}


def any_failed(tallies, begin):
    """Whether a test has failed in the class whose name is ``begin``."""
    return any(tally.failed for name, tally in tallies.items() if name.startswith(f"{begin}::"))


def package_fault(name, marks, copy, folder):
    """Whether the trials with these marks find a fault of the package, in a copy that has it."""
    tests = [f"TestNone::{test}" for test in PACKAGE_CATCHERS[name]]
    return any_failed(run_suite(tests, folder / "p.xml", LIMIT_S, copy, marks), "TestNone")


def main():
    """Try all faults, and write the table."""
    faults = load_faults()
    first = dict.fromkeys([*faults.FAULTS, *faults.PACKAGE_FAULTS], "none")
    first |= {name: run for name, (run, _, _) in REPOSITORY_CATCHERS.items()}
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        compile_faults(sorted(faults.FAULTS), LIMIT_S)
        found = {run: kernel_faults(faults.FAULTS, m, scratch) for run, m in RUNS.items()}
        for name in faults.PACKAGE_FAULTS:
            copy_package(name, scratch / name)
            for run, marks in RUNS.items():
                if package_fault(name, marks, scratch / name, scratch):
                    found[run].add(name)
                    break
    text = HEAD
    for run in reversed(RUNS):
        first |= dict.fromkeys(found[run], run)
    count = {run: sum(each == run for each in first.values()) for run in [*RUNS, "none"]}
    rows = [f"| {run} | {number} |" for run, number in count.items()]
    order = sorted(first, key=lambda name: ([*count].index(first[name]), name))
    named = [f"| {name} | {first[name]} |" for name in order]
    tables = [["| found first by | faults |", *rows], ["| fault | found by |", *named]]
    for head, *lines in tables:
        text += "\n".join(["", head, "|---|---|", *lines, ""])
    PAGE.write_text(text)
    print(*rows, sep="\n")


if __name__ == "__main__":
    main()
