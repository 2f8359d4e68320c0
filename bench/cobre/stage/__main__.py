"""Solve one stage problem by the SDDP example and by HiGHS from C, both warm, on one core.

    make bench-stage
    python -m bench.cobre.stage --python .venv-cobre/bin/python --out bench/results/stage.json

The stage is in the middle of a random case, and has the first 0, 100 and 500 cuts of a training. It
is solved at points of scenarios under the policy; at each point, under all openings from dry to
wet. Sides:

- ours: the loop of the backward pass, with cuts added as they are found violated;
- HiGHS, every cut: `Highs_changeRowsBoundsByRange` and `Highs_run` from the last basis;
- HiGHS, lazy: the same, with cuts added and dropped by the rules of ours.

HiGHS gets the scaled problem that our solver solves. HiGHS runs the dual simplex, without presolve,
on one thread, by its C library (`--python` must have the wheel `highsbox`; MIT). Sides take turns;
a figure is the median of the rounds, in thread time, without reading the data and the first solve.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from bench.cobre.page import stage_row, stage_table
from bench.cobre.stage.draws import (
    OPENINGS,
    Options,
    Stage,
    middle_stage,
    program_of,
    random_case,
    solve_draws,
    write_program,
)
from bench.machine import description as machine
from cobre_comm import BackendKind, create_communicator

STAGES = {8: 24, 20: 24, 40: 24, 80: 12, 160: 12}
"""The number of stages of the case, by its number of hydros."""
CUTS = 0, 100, 500
TRAINED = Options(iterations=40, trajectories=32)
"""The training that makes these cuts; it may end when it has made all of them."""
OURS, EVERY, LAZY = "ours", "all", "lazy"
"""The sides; `highs.c` knows the last two by these words."""
HERE = Path(__file__).parent


def run(*words: object) -> str:
    """Run a command, return its output; if the command fails, print its output and end."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def compile_highs(python: Path, folder: Path) -> Path:
    """Compile `highs.c` against the library of a wheel in `python`; return the program."""
    home = run(python, "-c", "import highsbox; print(highsbox.highs_dist_dir())").strip()
    program, lib = folder / "highs", f"{home}/lib"
    options = "-O3", "-march=native", f"-I{home}/include/highs", "-o", program
    run("cc", *options, HERE / "highs.c", f"-L{lib}", f"-Wl,-rpath,{lib}", "-lhighs", "-lm")
    return program


def differences(values: np.ndarray, right: np.ndarray) -> list[float]:
    """Return the differences relative to `right`; where that is below one, the absolute ones."""
    return (np.abs(values - right) / np.maximum(np.abs(right), 1.0)).tolist()


def measure(stage: Stage, program: Path, rounds: int, tolerance: float) -> dict:
    """Solve all draws of `stage` in each way in turn; return the figures of each way."""
    with tempfile.TemporaryDirectory() as name:
        problem, values = Path(name) / "problem", Path(name) / "values"
        arrays = program_of(stage)
        write_program(arrays, problem)
        columns, rows, _, hydros, cuts, _, draws = arrays.sizes.tolist()
        figures: dict[str, dict] = {way: {"us": []} for way in (OURS, EVERY, LAZY)}
        for _ in range(rounds):
            solved = solve_draws(stage)
            figures[OURS]["us"].append(solved.seconds / draws * 1e6)
            figures[OURS]["pivots"] = solved.pivots / draws
            for way in (EVERY, LAZY):
                told = json.loads(run(program, problem, values, way, tolerance))
                apart = differences(np.fromfile(values), solved.values)
                figures[way]["us"].append(told["seconds"] / draws * 1e6)
                figures[way] |= {
                    "pivots": told["pivots"] / draws,
                    "runs": told["runs"] / draws,
                    "failures": told["failures"],
                    "difference": max(apart),
                    "version": told["version"],
                }
    size = {"hydros": hydros, "rows": rows, "columns": columns, "cuts": cuts, "draws": draws}
    return size | figures


def main() -> None:
    """Measure, print a table, and write all figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.cobre.stage", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--python", type=Path, required=True, help="one that has highsbox")
    parser.add_argument("--out", type=Path, required=True, help="JSON of all figures")
    parser.add_argument("--hydros", type=int, nargs="*", default=list(STAGES), choices=STAGES)
    parser.add_argument("--draws", type=int, default=10_000, help="solves in all, default: 10000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tolerance", type=float, default=1e-9, help="of HiGHS, default: 1e-9")
    options = parser.parse_args()
    measured = []
    with tempfile.TemporaryDirectory() as name, create_communicator(BackendKind.LOCAL) as comm:
        program = compile_highs(options.python, Path(name))
        for hydros in options.hydros:
            case, count = random_case(hydros, STAGES[hydros]), options.draws // OPENINGS
            with middle_stage(comm, case, count, TRAINED, max(CUTS)) as stage:
                for cuts in sorted({min(cuts, stage.cuts()) for cuts in CUTS}):
                    stage_then = stage.with_cuts(cuts)
                    measured.append(measure(stage_then, program, options.rounds, options.tolerance))
                    print(*stage_row(measured[-1]), sep=" | ", flush=True)
    version = measured[0][EVERY]["version"]
    print(f"HiGHS {version}, tolerances {options.tolerance}")
    print(stage_table(measured))
    told = {"machine": machine(), "HiGHS": version, "tolerance": options.tolerance}
    options.out.write_text(json.dumps(told | {"measured": measured}) + "\n")


if __name__ == "__main__":
    main()
