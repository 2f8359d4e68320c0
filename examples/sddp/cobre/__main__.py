"""Train a case of Cobre's, or turn a case of one of the two programs into a case of the other.

    python -m examples.sddp.cobre FOLDER [options of train.py]
    python -m examples.sddp.cobre FOLDER --as case.json
    python -m examples.sddp.cobre case.json --as FOLDER

Run it at the root of the repository.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import train
from case.read import parse_case
from program import Parser, run_program
from training.share import UsageError

from cobre.folder import NotFromCobre
from cobre.read import read_folder

EXAMPLES = """\
  python -m examples.sddp.cobre examples/sddp/cases/cobre/1dtoy
  cobre-comm run -n 2 -m examples.sddp.cobre examples/sddp/cases/cobre/4ree --iterations 100
  python -m examples.sddp.cobre examples/sddp/cases/cobre/1dtoy --as 1dtoy.json
  python -m examples.sddp.cobre examples/sddp/cases/gen_h4_t5_k3.json --as valley

Without --as the case is trained, with the options of train.py."""


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    """Return the arguments; raise `UsageError` if they are wrong."""
    parser = Parser("python -m examples.sddp.cobre", "Read or write cases of Cobre's.", EXAMPLES)
    parser.add_argument("case", type=Path, help="folder of Cobre's, or a case file (JSON)")
    parser.add_argument(
        "--as", type=Path, required=True, dest="target", metavar="PATH",
        help="write the case in the format of the other program",
    )  # fmt: skip
    parser.add_argument(
        "--iterations", type=int, default=100, metavar="N", help="of Cobre (default: 100)"
    )
    parser.add_argument(
        "--forward-passes", type=int, default=8, metavar="M", help="of Cobre (default: 8)"
    )
    return parser.parse_args(argv)


def work(comm: Any, arguments: argparse.Namespace) -> None:
    """Convert the case on rank 0."""
    if comm.rank > 0:
        return
    try:
        (write_ours if arguments.case.is_dir() else write_cobres)(arguments)
    except OSError as error:
        file, told = error.filename or arguments.target, error.strerror or str(error)
        raise UsageError(f"{file}: {told}") from None


def write_ours(arguments: argparse.Namespace) -> None:
    """Write a folder of Cobre's as a case file."""
    try:
        case = read_folder(arguments.case)
    except NotFromCobre as error:
        raise UsageError(str(error)) from None
    if "note" in case:
        print(case["note"], file=sys.stderr)
    arguments.target.write_text(json.dumps(case, indent=1) + "\n")


def write_cobres(arguments: argparse.Namespace) -> None:
    """Write a case file as a folder of Cobre's."""
    case = parse_case(arguments.case.read_bytes(), arguments.case.name)
    try:
        from cobre.write import NotInCobre, write_case
    except ImportError:
        raise UsageError(f"{case.name} is not written: pip install pyarrow") from None
    try:
        write_case(case, arguments.target, arguments.forward_passes, arguments.iterations)
    except NotInCobre as error:
        raise UsageError(str(error)) from None


def main(argv: list[str]) -> int:
    """Run the program; return its exit code."""
    convert = any(word.split("=")[0] in ("--as", "-h", "--help") for word in argv)
    return run_program(argv, parse_arguments, work) if convert else train.main(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
