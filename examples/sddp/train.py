"""Train a hydrothermal case by SDDP; run by every rank.

    python train.py cases/gen_h4_t5_k3.json
    cobre-comm run -n 4 train.py cases/gen_h8_t12_k10.json --iterations 200 --out result.json

Exit codes: 0 done, 1 the case cannot be solved, 2 wrong arguments or case file, 130 interrupted.
"""

import argparse
import sys
from pathlib import Path
from typing import Any, NoReturn

from case.data import Case
from case.fields import CaseError
from output.chart import save_plot
from output.result import unwritable, write_result
from training.plan import Options
from training.run import StageInfeasible, Training, run_case
from training.share import UsageError, load_case

from cobre_comm import CommError, create_communicator


class Parser(argparse.ArgumentParser):
    """A parser whose errors are raised, so that one rank alone can print them."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing and leaving."""
        raise UsageError(f"{self.format_usage()}{self.prog}: error: {message}")


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    """Return the arguments; raise `UsageError` if they are wrong."""
    parser = Parser(prog="train.py", description="Train a hydrothermal case by SDDP.")
    parser.add_argument("case", type=Path, help="case file (JSON)")
    parser.add_argument("--iterations", type=int, help="exactly this many (default: to the end)")
    parser.add_argument("--forward-passes", type=int, help="trajectories per iteration")
    parser.add_argument("--seed", type=int, default=0, help="of the sampled scenarios")
    parser.add_argument("--gap", type=float, help="stop at this relative gap, statistically")
    parser.add_argument("--out", type=Path, help="write the result as JSON")
    parser.add_argument("--plot", type=Path, help="write a plot of the convergence")
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
    return arguments


def work(comm: Any, arguments: argparse.Namespace) -> None:
    """Read, train and write."""
    first = comm.rank == 0
    problems = []
    if first:
        problems = unwritable(arguments.out, "--out") + unwritable(arguments.plot, "--plot")
    case = load_case(comm, arguments.case, problems)
    training = train(comm, case, arguments)
    if first and arguments.out is not None:
        write_result(training, arguments.seed, arguments.out)
    if first and arguments.plot is not None:
        save_plot(training, arguments.plot)


def train(comm: Any, case: Case, arguments: argparse.Namespace) -> Training:
    """Train the case, and show how that goes."""
    options = Options(arguments.iterations, arguments.forward_passes, arguments.seed, arguments.gap)
    if arguments.quiet:
        return run_case(case, comm, options)
    from output.display import Display

    with Display(comm.rank == 0, arguments.iterations) as display:
        display.announce(case, comm.backend, comm.size)
        training = run_case(case, comm, options, display.watch)
    display.summarise(training)
    return training


def main(argv: list[str]) -> int:
    """Run the program; return its exit code. Only rank 0 prints."""
    rank = 0
    wrong: UsageError | None = None
    arguments = argparse.Namespace()
    try:
        try:
            arguments = parse_arguments(argv)
        except UsageError as error:
            wrong = error
        with create_communicator() as comm:
            rank = comm.rank
            if wrong is not None:
                raise wrong
            work(comm, arguments)
        return 0
    except KeyboardInterrupt:
        code, text = 130, "interrupted"
    except (CaseError, UsageError) as error:
        code, text = 2, str(error)
    except StageInfeasible as error:
        code, text = 1, str(error)
    except CommError as error:
        code, text = 1, f"rank {rank}: {error}"
        rank = 0
    if rank == 0:
        print(text, file=sys.stderr, flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
