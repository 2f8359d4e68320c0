"""Search the models in this folder exhaustively with spin, and see that planted faults are found.

    python3 model/check.py                              everything
    python3 model/check.py --ranks 2                    the quick searches
    python3 model/check.py --model wake --case RELEASE_STORE --trace
    python3 model/check.py --model step --case 'as it is' --define STEPS=9

Exit status: 0 all as expected; 1 an error in a clean model, a search that was cut short, or a
fault that was not found; 2 wrong arguments; 3 spin or a C compiler is missing.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from cases import CLEAN, Case, all_cases

HERE = pathlib.Path(__file__).resolve().parent
DEPTH = 100_000  # steps of the longest path; the models need a few hundred steps
MEMORY_MB = 2000  # of one search; the largest search needs half of it
LIMIT_S = 900.0  # of one search, on a busy machine
WRONG_ARGUMENTS = 2
TOOLS_MISSING = 3


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of a search: its error, if there is one, its states, and whether it saw all."""

    error: str
    states: int
    depth: int
    seconds: float
    cut_short: str
    trace: str = ""


def find_tools() -> tuple[str, str]:
    """Return the commands of spin and of a C compiler; leave with status 3 if there is none."""
    spin = shutil.which("spin")
    compiler = next(filter(None, map(shutil.which, ("gcc", "cc", "clang"))), None)
    if spin is None:
        print("spin is not installed: apt-get install spin", file=sys.stderr)
    if compiler is None:
        print("no C compiler is installed: apt-get install gcc", file=sys.stderr)
    if spin is None or compiler is None:
        raise SystemExit(TOOLS_MISSING)
    return spin, compiler


def run(command: list[str], folder: str, limit_s: float = LIMIT_S) -> str:
    """Run a command in a folder; return its output."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=limit_s, check=False
    )
    if done.returncode != 0 and "pan:" not in done.stdout:
        raise RuntimeError(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
    return done.stdout


def search(case: Case, tools: tuple[str, str], depth: int, with_trace: bool) -> Result:
    """Build and run one search in a folder that is removed afterwards."""
    spin, compiler = tools
    model = str(HERE / f"{case.model}.pml")
    words = [spin, f"-P{compiler} -std=gnu99 -E -x c", f"-DR={case.ranks}"]
    words += [f"-D{switch}" for switch in case.switches]
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cobre-model-") as folder:
        run([*words, "-a", model], folder)
        # To compile takes longer than a small search takes. A large search packs its states, and
        # loses none.
        effort = ["-O2", "-DCOLLAPSE"] if case.kind == CLEAN and case.ranks > 2 else ["-O0"]
        options = [*effort, "-w", "-DSAFETY", "-DNOFAIR", f"-DMEMLIM={MEMORY_MB}"]
        run([compiler, *options, "-o", "pan", "pan.c"], folder)
        # A model that has a process `last` says by assertions how it may end, even while ranks
        # wait.
        says_ends = "proctype last" in pathlib.Path(model).read_text()
        try:
            said = run(["./pan", f"-m{depth}", "-n", *(["-E"] if says_ends else [])], folder)
        except subprocess.TimeoutExpired:
            return Result("", 0, 0, time.monotonic() - began, f"longer than {LIMIT_S:g} s")
        trail = f"{folder}/{case.model}.pml.trail"
        trace = ""
        if with_trace and pathlib.Path(trail).exists():
            trace = run([*words, "-p", "-k", trail, model], folder)
    return read(said, time.monotonic() - began, trace)


def read(said: str, seconds: float, trace: str) -> Result:
    """Read the result of a search from its output."""
    error = re.search(r"pan:\d+: (.*?)(?: \(at depth \d+\))?$", said, re.MULTILINE)
    states = re.search(r"^ *([\d.e+]+) states, stored", said, re.MULTILINE)
    depth = re.search(r"depth reached (\d+), errors: \d+", said)
    if states is None or depth is None:
        raise RuntimeError(f"spin's output is not understood:\n{said}")
    cut_short = ""
    if "max search depth too small" in said:
        cut_short = "the search was not deep enough"
    elif "MEMLIM" in said or "out of memory" in said:
        cut_short = f"more than {MEMORY_MB} MB"
    elif error is None and "Search not completed" in said:
        cut_short = "the search was not completed"
    found = error.group(1) if error else ""
    return Result(
        found, int(float(states.group(1))), int(depth.group(1)), seconds, cut_short, trace
    )


def compare(case: Case, result: Result) -> tuple[bool, str]:
    """Return whether a case expects this result, and the answer in words."""
    if case.kind == CLEAN:
        if result.error:
            return False, f"ERROR: {result.error}"
        if result.cut_short:
            return False, f"NOT EXHAUSTIVE: {result.cut_short}"
        return True, "no error, all states searched"
    if not result.error:
        return False, f"NOT FOUND: {result.cut_short or 'no error in all states'}"
    if not any(part in result.error for part in case.error.split(" or ")):
        return False, f"ANOTHER ERROR: {result.error}; expected one with {case.error}"
    return True, f"found: {result.error}"


def arguments(argv: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--model",
        help="only this model: step, stripes, wake, death, attach, leaders, work, roll, chair",
    )
    parser.add_argument("--case", help="only this case, as named in the output")
    parser.add_argument("--ranks", type=int, help="only with this number of ranks")
    parser.add_argument("--kind", choices=["clean", "fault"], help="only these")
    parser.add_argument("--define", action="append", default=[], help="one more NAME[=value]")
    parser.add_argument("--depth", type=int, default=DEPTH, help="longest path, in steps")
    parser.add_argument("--trace", action="store_true", help="print the way to each error")
    parser.add_argument("--list", action="store_true", help="only say what would be searched")
    parser.add_argument("-j", "--jobs", type=int, default=min(2, os.cpu_count() or 1))
    return parser.parse_args(argv)


def chosen(options: argparse.Namespace) -> list[Case]:
    """Return the cases that the command line asks for."""
    cases = [
        dataclasses.replace(case, switches=(*case.switches, *options.define))
        for case in all_cases()
        if options.model in (None, case.model)
        and options.case in (None, case.name)
        and options.ranks in (None, case.ranks)
        and options.kind in (None, case.kind)
    ]
    if not cases:
        print("no such case; see --list", file=sys.stderr)
        raise SystemExit(WRONG_ARGUMENTS)
    return cases


def main(argv: list[str]) -> int:
    """Run the chosen searches; return the exit status."""
    options = arguments(argv)
    cases = chosen(options)
    if options.list:
        for case in cases:
            print(f"{case.model:8} {case.ranks} {case.kind:6} {case.name}")
        return 0
    tools = find_tools()
    print(f"{'model':8} ranks {'kind':6} {'case':28} {'states':>9} {'depth':>6} {'s':>6}  result")
    failures = 0
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        searches = [pool.submit(search, c, tools, options.depth, options.trace) for c in cases]
        for case, one in zip(cases, searches, strict=True):
            result = one.result()
            is_right, words = compare(case, result)
            failures += not is_right
            print(
                f"{case.model:8} {case.ranks:5} {case.kind:6} {case.name:28} {result.states:9} "
                f"{result.depth:6} {result.seconds:6.1f}  {words}",
                flush=True,
            )
            if result.trace:
                print(result.trace)
    print(f"{len(cases)} searches, {failures} not as expected, {time.monotonic() - began:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
