"""``python -m tests.wild``: the SDDP example on hundreds of wild cases, judged beside HiGHS.

    python -m tests.wild --cases 500 --json build/wild.json
    python -m tests.wild --cases 0 --cobre .venv-cobre/bin/python
    python -m tests.wild --number 17 --write 17.json

Every case is a function of its number. It is wild because some of its data are odd (`oddities.py`).
The example trains each case for 20 iterations twice, without and with selection of cuts. If the
scenario tree is small, the example also trains until it settles, and the bounds are compared with
the optimum of the extensive form. With `--cobre`, cases drawn for Cobre are trained by the example
and by Cobre, and Cobre is asked whether it still takes or refuses every mutant of
`tests/examples/cobre_mutants.py` as that table says. `--write` writes one case for `train.py`.
"""

import argparse
import json
import os
import sys
import time
from functools import partial
from pathlib import Path

from training.plan import Options
from training.run import run_case

from cobre_comm import BackendKind, create_communicator
from tests.examples.cobre_mutants import MUTANTS
from tests.forked import each
from tests.wild.beside_cobre import judge_beside_cobre, judge_mutant
from tests.wild.draw import draw, draw_for_cobre
from tests.wild.judge import judge
from tests.wild.summary import Tally

LIMIT_S = 900.0  # for one case; the largest cases take a minute


def arguments(words):
    parser = argparse.ArgumentParser(prog="python -m tests.wild", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--cases", type=int, default=500, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the number to begin with")
    parser.add_argument("--number", type=int, action="append", help="only this one")
    parser.add_argument("--cobre", type=Path, metavar="PYTHON", help="one that has cobre-python")
    parser.add_argument("--cobre-cases", type=int, default=20, help="how many with Cobre")
    parser.add_argument("--cobre-number", type=int, action="append", help="only this one")
    parser.add_argument("--workers", type=int, default=2, help="cases at a time")
    parser.add_argument("--json", type=Path, help="write what was found at each case")
    parser.add_argument("--write", type=Path, help="write the case of one number, and end")
    return parser.parse_args(words)


def alone(number, how):
    """Judge one case, on a communicator of one rank."""
    with create_communicator(BackendKind.LOCAL) as comm:
        return how(number, comm)


def in_silence(number, how):
    """Judge one case in a process of its own, which drops what HiGHS prints."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return alone(number, how)


def numbers(options):
    """Return the numbers of the cases of each of the two kinds."""
    given = options.number or options.cobre_number
    ours = range(options.first, options.first + options.cases)
    beside = range(options.cobre_cases if options.cobre else 0)
    if given:
        ours, beside = options.number or (), options.cobre_number or ()
    return list(ours), list(beside)


def main(words=None):
    options = arguments(words)
    ours, beside = numbers(options)
    if options.write:
        drawn = draw(ours[0]) if options.number else draw_for_cobre(beside[0])
        options.write.write_text(json.dumps(drawn.written(), indent=1) + "\n")
        return 0
    start, tally = time.monotonic(), Tally()
    alone(0, lambda number, comm: run_case(draw(number).case(), comm, Options(iterations=1)))
    cobre = partial(judge_beside_cobre, python=options.cobre)
    for kind, how, chosen in (("wild", judge, ours), ("cobre", cobre, beside)):
        for number, found in each(partial(in_silence, how=how), chosen, options.workers, LIMIT_S):
            tally.add(kind, number, found)
    mutants = MUTANTS if options.cobre and not options.cobre_number else ()
    ask = partial(judge_mutant, python=options.cobre)
    for name, found in each(ask, mutants, options.workers, LIMIT_S):
        tally.add("mutant", name, found)
    print(tally.text(time.monotonic() - start))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(tally.found, indent=1) + "\n")
    return int(bool(tally.problems))


if __name__ == "__main__":
    sys.exit(main())
