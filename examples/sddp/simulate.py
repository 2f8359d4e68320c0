"""Evaluate a trained policy on scenarios; run by every rank.

    python train.py cases/gen_h8_t12_k10.json --checkpoint valley.ckpt
    cobre-comm run -n 4 simulate.py cases/gen_h8_t12_k10.json valley.ckpt --scenarios 5000

`python simulate.py --help` has the options and exit codes.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from files import unwritable, write_outputs, write_text
from output.fan import save_fans
from output.result import both_bases
from output.style import suffix_problem
from output.table import table_problem, write_table
from program import Parser, run_program
from simulation.evaluate import Evaluation, evaluate
from simulation.scenarios import Drawn, load_given
from training.share import UsageError, load_case, shared_setting

EXAMPLES = """\
  python train.py cases/gen_h8_t12_k10.json --iterations 60 --checkpoint valley.ckpt
  cobre-comm run -n 4 simulate.py cases/gen_h8_t12_k10.json valley.ckpt --plot valley.pdf
  python simulate.py cases/gen_h8_t12_k10.json valley.ckpt --given past.json --table past.csv"""


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    """Return the arguments; raise `UsageError` if they are wrong."""
    parser = Parser("simulate.py", "Evaluate a trained policy on scenarios.", EXAMPLES)
    parser.add_argument("case", type=Path, help="case file (JSON), or folder of Cobre's")
    parser.add_argument("policy", type=Path, help="checkpoint of a training of that case")
    parser.add_argument(
        "--scenarios", type=int, default=1000, metavar="N",
        help="draw so many from the openings of the case (default: 1000)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="of the drawn scenarios")
    parser.add_argument(
        "--given", type=Path, metavar="FILE",
        help="take the scenarios of FILE instead: JSON with inflows [S][T][H] and demand [S][T]",
    )  # fmt: skip
    parser.add_argument(
        "--tail", type=float, default=0.95, metavar="P",
        help="CVaR is the mean cost of the worst 1 - P of the scenarios (default: 0.95)",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the statistics as JSON")
    parser.add_argument(
        "--table", type=Path, metavar="FILE",
        help="write storage, generation, spill, price and cost of every scenario and stage "
        "(.csv; .parquet where pyarrow is installed)",
    )  # fmt: skip
    parser.add_argument(
        "--plot", type=Path, metavar="FILE",
        help="plot quantiles of storage and spot price (.png, .pdf, .svg)",
    )  # fmt: skip
    parser.add_argument("--quiet", action="store_true", help="show nothing")
    arguments = parser.parse_args(argv)
    if arguments.scenarios < 1:
        parser.error(f"--scenarios must be at least 1, is {arguments.scenarios}")
    if not 0 <= arguments.seed < 2**63:
        parser.error(f"--seed must be between 0 and 2^63 - 1, is {arguments.seed}")
    if not 0.0 <= arguments.tail < 1.0:
        parser.error(f"--tail must be at least 0 and below 1, is {arguments.tail}")
    return arguments


def find_problems(arguments: argparse.Namespace) -> list[str]:
    """Return a sentence for each file that cannot be written."""
    outputs = {"--out": arguments.out, "--table": arguments.table, "--plot": arguments.plot}
    problems = unwritable("simulate.py", outputs)
    problems += table_problem("simulate.py", arguments.table)
    return problems + suffix_problem("simulate.py", arguments.plot)


def work(comm: Any, arguments: argparse.Namespace) -> None:
    """Read case and policy, evaluate, show and write the results."""
    first = comm.rank == 0
    case = load_case(comm, arguments.case, find_problems(arguments) if first else [])
    if arguments.given is None:
        scenarios = Drawn(arguments.scenarios, arguments.seed)
    else:
        scenarios = load_given(comm, case, arguments.given)
    with shared_setting(comm, case) as setting:
        evaluation = evaluate(setting, arguments.policy, scenarios, arguments.tail)
    if not first:
        return
    if not arguments.quiet:
        show(evaluation)
    problems = write_outputs(
        {
            "--out": (arguments.out, lambda path: write_statistics(evaluation, path)),
            "--table": (arguments.table, lambda path: write_table(evaluation.table, path)),
            "--plot": (arguments.plot, lambda path: save_fans(evaluation, path)),
        }
    )
    if problems:
        raise UsageError("\n".join(problems))


def show(evaluation: Evaluation) -> None:
    """Print the statistics."""
    s = evaluation.statistics
    lines = [f"{evaluation.case.name}: {len(evaluation.costs)} scenarios {evaluation.source}"]
    lines.append(f"policy       of {evaluation.iterations} iterations")
    spread = "" if s.half_width is None else f" ± {s.half_width:.4g}"
    lines.append(f"mean cost    {s.mean:.10g}{spread}")
    for level, value in s.quantiles.items():
        lines.append(f"{float(level):<12.0%} {value:.10g}")
    lines.append(f"CVaR {s.tail:<7.0%} {s.cvar:.10g}")
    print("\n".join(lines), flush=True)


def write_statistics(evaluation: Evaluation, path: Path) -> None:
    """Write the statistics and every scenario's cost to `path`."""
    numbers = asdict(evaluation.statistics)
    quantiles = numbers.pop("quantiles")
    numbers |= {f"quantile_{level}": value for level, value in quantiles.items()}
    result = {
        "case": evaluation.case.name,
        "backend": evaluation.backend,
        "ranks": evaluation.ranks,
        "iterations": evaluation.iterations,
        "scenarios": f"{len(evaluation.costs)} {evaluation.source}",
        **both_bases({**numbers, "costs": evaluation.costs.tolist()}),
    }
    write_text(path, json.dumps(result, indent=1) + "\n")


def main(argv: list[str]) -> int:
    """Run the program; return its exit code."""
    return run_program(argv, parse_arguments, work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
