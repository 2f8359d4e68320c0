"""Solve one stage problem by the SDDP example and by HiGHS from C, both warm, on one core.

    make bench-stage
    python -m bench.cobre.stage --python .venv-cobre/bin/python --out bench/results/stage.json

The stage is the one in the middle of a random case, with the first 0, 100 and 500 cuts of a
training. It is solved at points of scenarios under the policy, each under all openings from dry to
wet. Sides:

- ours: the loop of the backward pass, with cuts added as they are found violated;
- HiGHS, every cut: `Highs_changeRowsBoundsByRange` and `Highs_run` from the last basis;
- HiGHS, lazy: the same, with cuts added and dropped by the rules of ours.

HiGHS gets the scaled problem that ours solves. It is the dual simplex, without presolve, on one
thread, by its C library (`--python` must have the wheel `highsbox`; MIT). Sides take turns; a
figure is the median of the rounds, in thread time, without reading the data and the first solve.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from bench.cobre.stage.draws import (
    OPENINGS,
    Options,
    Solved,
    Stage,
    middle_stage,
    program_of,
    random_case,
    solve_draws,
    write_program,
)
from bench.machine import git, versions
from bench.report.text import number, table
from cobre_comm import BackendKind, create_communicator
from cobre_comm.check.machine import processor

STAGES = {8: 24, 20: 24, 40: 24, 80: 12, 160: 12}
"""Stages of the case by its number of hydros."""
CUTS = 0, 100, 500
TRAINED = Options(iterations=40, trajectories=32)
"""The longest training for these cuts."""
OURS, EVERY, LAZY = "ours", "all", "lazy"
HERE = Path(__file__).parent


def run(*words: object) -> str:
    """Run a command and return its output; on failure, end with its words."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def compile_highs(python: Path, folder: Path) -> Path:
    """Compile `highs.c` against the library of the wheel in `python`; return the program."""
    home = run(python, "-c", "import highsbox; print(highsbox.highs_dist_dir())").strip()
    program, lib = folder / "highs", f"{home}/lib"
    options = "-O3", "-march=native", f"-I{home}/include/highs", "-o", program
    run("cc", *options, HERE / "highs.c", f"-L{lib}", f"-Wl,-rpath,{lib}", "-lhighs", "-lm")
    return program


def by_highs(program: Path, folder: Path, way: str, tolerance: float) -> tuple[Solved, dict]:
    """Solve the problem in `folder` by HiGHS; return that, and all that the program tells."""
    values = folder / "values"
    told = json.loads(run(program, folder / "problem", values, way, tolerance))
    return Solved(np.fromfile(values), told["seconds"], told["pivots"]), told


def measure(stage: Stage, program: Path, rounds: int, tolerance: float) -> dict:
    """Solve all draws of `stage` in every way, by turns; return the figures."""
    with tempfile.TemporaryDirectory() as name:
        folder, arrays = Path(name), program_of(stage)
        write_program(arrays, folder / "problem")
        columns, rows, _, hydros, cuts, draws = arrays.sizes.tolist()
        ways: dict[str, list[Solved]] = {OURS: [], EVERY: [], LAZY: []}
        told = {}
        for _ in range(rounds):
            ways[OURS].append(solve_draws(stage))
            for way in (EVERY, LAZY):
                solved, told[way] = by_highs(program, folder, way, tolerance)
                ways[way].append(solved)
    right = ways[OURS][0].values
    return {
        "hydros": hydros, "columns": columns, "rows": rows, "cuts": cuts, "draws": draws,
        "highs": told[EVERY]["version"], "lazy_runs": told[LAZY]["runs"] / draws,
        "us": {way: [s.seconds / draws * 1e6 for s in each] for way, each in ways.items()},
        "pivots": {way: each[0].pivots / draws for way, each in ways.items()},
        "difference": {
            way: float(np.max(np.abs(ways[way][0].values - right) / np.abs(right)))
            for way in (EVERY, LAZY)
        },
    }  # fmt: skip


HEADER = [
    "hydros", "rows x columns", "cuts", "ours, µs", "pivots", "HiGHS, every cut, µs", "pivots",
    "ratio", "HiGHS, lazy, µs", "pivots", "runs", "ratio", "largest difference",
]  # fmt: skip


def row(measured: dict) -> list[str]:
    """Return a row of the table."""
    us = {way: statistics.median(each) for way, each in measured["us"].items()}
    pivots = measured["pivots"]
    return [
        str(measured["hydros"]), f"{measured['rows']} x {measured['columns']}",
        str(measured["cuts"]), number(us[OURS]), number(pivots[OURS]),
        number(us[EVERY]), number(pivots[EVERY]), number(us[EVERY] / us[OURS]),
        number(us[LAZY]), number(pivots[LAZY]), number(measured["lazy_runs"]),
        number(us[LAZY] / us[OURS]), f"{max(measured['difference'].values()):.0e}",
    ]  # fmt: skip


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
                    print(*row(measured[-1]), sep=" | ", flush=True)
    told = {
        "processor": processor(), "kernel": platform.release(), "commit": git("rev-parse", "HEAD"),
        "versions": {"HiGHS": measured[0]["highs"]} | versions(), "tolerance": options.tolerance,
    }  # fmt: skip
    print(f"HiGHS {measured[0]['highs']}, tolerances {options.tolerance}; {processor()}")
    print(table(HEADER, [row(each) for each in measured]))
    options.out.write_text(json.dumps(told | {"measured": measured}) + "\n")


if __name__ == "__main__":
    main()
