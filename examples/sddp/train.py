"""Train a hydrothermal case by SDDP; run by every rank.

    python train.py cases/gen_h4_t5_k3.json
    cobre-comm run -n 4 train.py cases/gen_h8_t12_k10.json --iterations 200 --out result.json

`python train.py --help` has the options and exit codes.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from case.data import Case
from files import unwritable, write_outputs
from output.chart import save_plot
from output.result import write_result
from output.style import suffix_problem
from program import Parser, run_program, through_losses
from training.finished import Finished
from training.plan import Options
from training.run import Training, run_case
from training.share import UsageError, load_case

EXAMPLES = """\
  python train.py cases/gen_h4_t5_k3.json
  cobre-comm run -n 4 train.py cases/gen_h8_t12_k10.json --checkpoint valley.ckpt --plot valley.pdf
  (killed, or stopped? the same command goes on from valley.ckpt, on any number of ranks;
   with COBRE_COMM_GRACEFUL=SIGTERM that signal stops it after the present iteration)
  cobre-comm run -n 4 --survive train.py cases/gen_h8_t12_k10.json --survive
  (a rank is killed? the others redo the iteration, and end with the same cuts)"""


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    """Return the arguments; raise `UsageError` if they are wrong."""
    parser = Parser("train.py", "Train a hydrothermal case by SDDP.", EXAMPLES)
    parser.add_argument("case", type=Path, help="case file (JSON), or folder of Cobre's")
    parser.add_argument(
        "--iterations", type=int, metavar="N",
        help="this many, unless another rule stops before (default: to the end)",
    )  # fmt: skip
    parser.add_argument(
        "--forward-passes", type=int, metavar="M", help="trajectories per iteration"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the sampled scenarios")
    parser.add_argument(
        "--gap", type=float,
        help="stop when fresh paths cost at most this part more than the bound, with 95 %% "
        "confidence over all samples of them",
    )  # fmt: skip
    parser.add_argument(
        "--time-limit", type=float, metavar="SECONDS",
        help="stop after the iteration in which so many seconds have passed",
    )  # fmt: skip
    parser.add_argument(
        "--stall-iterations", type=int, metavar="N",
        help="stop when the bound has moved by less than the tolerance in so many iterations",
    )  # fmt: skip
    parser.add_argument(
        "--stall-tolerance", type=float, default=1e-4, metavar="X",
        help="relative (default: 0.0001)",
    )  # fmt: skip
    parser.add_argument(
        "--checkpoint", type=Path, metavar="FILE",
        help="go on from FILE if it exists; write it as the training goes on, and at the end",
    )  # fmt: skip
    parser.add_argument(
        "--checkpoint-every", type=int, default=10, metavar="N",
        help="iterations between two checkpoints (default: 10)",
    )  # fmt: skip
    parser.add_argument(
        "--select-cuts", action="store_true",
        help="delete the cuts that are the highest at none of the latest points of their stage, "
        "from the first iteration on (default: in stages with more than 2048 cuts)",
    )  # fmt: skip
    parser.add_argument("--all-cuts", action="store_true", help="delete none")
    parser.add_argument(
        "--survive", action="store_true",
        help="once a rank is lost, redo the iteration on the ranks that are left; keeps all cuts",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the result as JSON")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="plot the convergence (.png, .pdf, .svg)"
    )
    parser.add_argument("--quiet", action="store_true", help="show nothing; rich is not needed")
    arguments = parser.parse_args(argv)
    if arguments.iterations is not None and arguments.iterations < 0:
        parser.error(f"--iterations must not be negative, is {arguments.iterations}")
    if arguments.forward_passes is not None and arguments.forward_passes < 1:
        parser.error(f"--forward-passes must be at least 1, is {arguments.forward_passes}")
    if not 0 <= arguments.seed < 2**63:
        parser.error(f"--seed must be between 0 and 2^63 - 1, is {arguments.seed}")
    if arguments.gap is not None and not arguments.gap >= 0.0:
        parser.error(f"--gap must not be negative, is {arguments.gap}")
    if arguments.time_limit is not None and not arguments.time_limit >= 0.0:
        parser.error(f"--time-limit must not be negative, is {arguments.time_limit}")
    if arguments.stall_iterations is not None and arguments.stall_iterations < 1:
        parser.error(f"--stall-iterations must be at least 1, is {arguments.stall_iterations}")
    if not arguments.stall_tolerance >= 0.0:
        parser.error(f"--stall-tolerance must not be negative, is {arguments.stall_tolerance}")
    if arguments.checkpoint_every < 1:
        parser.error(f"--checkpoint-every must be at least 1, is {arguments.checkpoint_every}")
    if arguments.select_cuts and arguments.all_cuts:
        parser.error("--select-cuts deletes cuts, --all-cuts deletes none: ask for one of them")
    if arguments.survive and arguments.select_cuts:
        parser.error("--survive needs all cuts: --select-cuts moves those of finished iterations")
    return arguments


def find_problems(arguments: argparse.Namespace) -> list[str]:
    """Return a sentence for each file that cannot be written."""
    outputs = {"--out": arguments.out, "--plot": arguments.plot}
    outputs["--checkpoint"] = arguments.checkpoint
    return unwritable("train.py", outputs) + suffix_problem("train.py", arguments.plot)


def work(comm: Any, arguments: argparse.Namespace) -> None:
    """Read the case, train it, write result and plot; with `--survive`, again after a loss."""
    finished = Finished()
    if arguments.survive:
        through_losses(comm, lambda comm: work_once(comm, arguments, finished))
    else:
        work_once(comm, arguments, finished)


def work_once(comm: Any, arguments: argparse.Namespace, finished: Finished) -> None:
    """Read the case, train it after the `finished` iterations, and write result and plot."""
    first = comm.rank == 0
    case = load_case(comm, arguments.case, find_problems(arguments) if first else [])
    training = train(comm, case, arguments, finished)
    if not first:
        return
    problems = write_outputs(
        {
            "--out": (arguments.out, lambda path: write_result(training, arguments.seed, path)),
            "--plot": (arguments.plot, lambda path: save_plot(training, path)),
        }
    )
    if problems:
        raise UsageError("\n".join(problems))


def train(comm: Any, case: Case, arguments: argparse.Namespace, finished: Finished) -> Training:
    """Train the case, and show the iterations unless `--quiet` is set."""
    keeps_all = arguments.all_cuts or arguments.survive
    options = Options(
        arguments.iterations, arguments.forward_passes, arguments.seed, arguments.gap,
        arguments.checkpoint, arguments.checkpoint_every,
        True if arguments.select_cuts else False if keeps_all else None,
        arguments.time_limit, arguments.stall_iterations, arguments.stall_tolerance,
    )  # fmt: skip
    if arguments.quiet:
        return run_case(case, comm, options, finished=finished)
    from output.display import Display

    with Display(comm, arguments.iterations) as display:
        display.announce(case)
        training = run_case(case, comm, options, display.watch, finished)
    display.summarise(training)
    return training


def main(argv: list[str]) -> int:
    """Run the program; return its exit code."""
    return run_program(argv, parse_arguments, work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
