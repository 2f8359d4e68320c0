"""Train the same cases by the SDDP example and by Cobre, by turns, and print what they took.

    python -m bench.cobre --python .venv-cobre/bin/python --out bench/results/cobre.json

Both get the same random cases and openings, the same number of forward passes and iterations, and
as many ranks as threads. Forward passes draw other openings, so bounds differ by iteration. Cobre
trains with each of `SELECTIONS`; the one that takes least time is its best. It does more than the
example: it checks and models more, and writes its policy and statistics.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
SDDP = HERE.parents[1] / "examples" / "sddp"
sys.path.insert(0, str(SDDP))

from case.random_case import Shape, generate  # noqa: E402
from case.read import parse_case  # noqa: E402
from cobre.write import write_case  # noqa: E402

from bench.report.text import table  # noqa: E402

SELECTIONS = (None, "dynamic", "lml1")  # None: every cut is a row, which is its default
SEED = 1
OURS = "cobre_comm"


class Size(NamedTuple):
    """A case, and what is done with it."""

    hydros: int
    stages: int
    openings: int = 20
    iterations: int = 10
    forward_passes: int = 8


SIZES = (Size(4, 24), Size(8, 24), Size(20, 24), Size(40, 24), Size(80, 12), Size(160, 12))


def train_ours(case: Path, size: Size, ranks: int, folder: Path) -> dict:
    """Train by the example; return what it tells."""
    out = folder / "ours.json"
    words = "run", "-n", ranks, "--backend", "shm", SDDP / "train.py", case, "--quiet"
    limits = "--iterations", size.iterations, "--forward-passes", size.forward_passes
    run(sys.executable, "-m", "cobre_comm", *words, *limits, "--out", out)
    told = json.loads(out.read_text())
    bounds = told["decimal"]["lower_bound"]
    return {"training_s": told["wall_s"], "bounds": bounds, "seconds": told["iteration_s"]}


def train_cobre(python: Path, written: Path, threads: int, folder: Path) -> dict:
    """Train by Cobre; return what it tells, with seconds by iteration."""
    out = folder / "cobre.json"
    run(python, HERE / "run_cobre.py", written, threads, out)
    told = json.loads(out.read_text())
    ends = told["seconds"]
    told["seconds"] = [end - begin for begin, end in zip([0.0, *ends], ends, strict=False)]
    return told


def run(*words: object) -> None:
    """Run a command; on failure, end with its words."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")


def measure(size: Size, ranks: int, rounds: int, python: Path) -> dict:
    """Train one case in every way, by turns; return the runs of each way."""
    shape = Shape(size.hydros, max(3, size.hydros * 5 // 8), size.stages, size.openings)
    data = json.dumps(generate(shape, SEED)).encode()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "case.json"
        path.write_bytes(data)
        written = {selection: folder / str(selection) for selection in SELECTIONS}
        case = parse_case(data, path.name)
        for selection, place in written.items():
            write_case(case, place, size.forward_passes, size.iterations, selection)
        ways = {OURS: lambda: train_ours(path, size, ranks, folder)} | {
            f"Cobre, {selection or 'every cut'}": (
                lambda place=place: train_cobre(python, place, ranks, folder)
            )
            for selection, place in written.items()
        }
        ways[OURS]()  # compiles
        runs: dict[str, list[dict]] = {way: [] for way in ways}
        for number in range(rounds):
            for way in list(ways) if number % 2 == 0 else reversed(list(ways)):
                runs[way].append(ways[way]())
    return {"size": size._asdict(), "ranks": ranks, "runs": runs}


def seconds_to(run: dict, bound: float) -> float | None:
    """Return the seconds until the bound of a run is as high as `bound`; None if it never is."""
    total = 0.0
    for reached, seconds in zip(run["bounds"], run["seconds"], strict=True):
        total += seconds
        if reached >= bound:
            return total
    return None


def row(measured: dict) -> list[str]:
    """Return a row of the table."""
    size, runs = Size(**measured["size"]), measured["runs"]
    took = {way: statistics.median(r["training_s"] for r in each) for way, each in runs.items()}
    ours = took.pop(OURS)
    default, best = took["Cobre, every cut"], min(took, key=lambda way: took[way])
    reached = runs[best][0]["bounds"][-1]
    equal = seconds_to(runs[OURS][0], reached)
    return [
        f"{size.hydros} x {size.stages} x {size.openings}",
        str(measured["ranks"]),
        f"{ours:.3g}",
        f"{default:.3g} ({ours / default:.3f})",
        f"{took[best]:.3g}, {best.removeprefix('Cobre, ')} ({ours / took[best]:.3f})",
        f"{runs[OURS][0]['bounds'][-1]:.6g}",
        f"{reached:.6g}",
        "not reached" if equal is None else f"{equal:.3g} ({equal / took[best]:.3f})",
    ]


HEADER = [
    "hydros x stages x openings",
    "ranks",
    "ours, s",
    "Cobre, s",
    "its best selection, s",
    "our bound",
    "its bound",
    "ours to its bound, s",
]


def main() -> None:
    """Measure, print a table, and write all figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.cobre", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--python", type=Path, required=True, help="one that has cobre-python")
    parser.add_argument("--out", type=Path, required=True, help="JSON of all figures")
    parser.add_argument("--hydros", type=int, nargs="*", help="of the cases; default: all")
    parser.add_argument("--ranks", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    measured = []
    for size in SIZES:
        for ranks in options.ranks:
            if options.hydros is None or size.hydros in options.hydros:
                measured.append(measure(size, ranks, options.rounds, options.python))
                print(*row(measured[-1]), sep=" | ", flush=True)
    print(table(HEADER, [row(each) for each in measured]))
    options.out.write_text(json.dumps(measured) + "\n")


if __name__ == "__main__":
    main()
