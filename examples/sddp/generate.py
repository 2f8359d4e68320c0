"""Write a random case of any size.

python generate.py case.json --hydros 4 --thermals 3 --stages 12 --openings 10 --seed 7
"""

import argparse
import json
import sys
from pathlib import Path

from case.random_case import Shape, generate
from files import write_text

SIZES = (
    ("hydros", 1, 4),
    ("thermals", 0, 3),
    ("stages", 1, 6),
    ("openings", 1, 4),
    ("buses", 1, 1),
    ("seed", 0, 0),
)
"""The name, the least value and the default value of each size."""


def main(argv: list[str]) -> int:
    """Write the case that the command line describes."""
    parser = argparse.ArgumentParser(prog="generate.py", description="Write a random case.")
    parser.add_argument("out", type=Path)
    for name, least, default in SIZES:
        parser.add_argument(f"--{name}", type=int, default=default, help=f"at least {least}")
    for name in ("segments", "random-demand", "stage-cost", "uneven", "fixed-first", "limits"):
        parser.add_argument(f"--{name}", action="store_true")
    options = vars(parser.parse_args(argv))
    out, seed = options.pop("out"), options["seed"]
    for name, least, _ in SIZES:
        if options[name] < least:
            parser.error(f"--{name} is too small: {options[name]}")
    del options["seed"]
    try:
        write_text(out, json.dumps(generate(Shape(**options), seed), indent=1) + "\n")
    except OSError as error:
        parser.error(f"cannot write {out}: {error.strerror}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
