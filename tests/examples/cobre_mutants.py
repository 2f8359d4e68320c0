"""A folder of Cobre's with one change at a time, and what Cobre 0.18 makes of each change.

`python -m tests.wild --cobre PYTHON` asks the installed Cobre again.
"""

import shutil
from pathlib import Path

from case.read import parse_case
from cobre.write import write_case

from tests.examples import cobre_mutants_of_system, cobre_mutants_of_tables
from tests.examples.cobre_changes import PLAIN, Mutant

CASE = Path(__file__).parents[2] / "examples" / "sddp" / "cases" / "gen_h4_t5_k3.json"
MUTANTS = {
    "plain": Mutant(lambda folder: None, PLAIN, None),
    **cobre_mutants_of_tables.MUTANTS,
    **cobre_mutants_of_system.MUTANTS,
}


def write_base(folder):
    """Write the folder to which mutants make their changes."""
    write_case(parse_case(CASE.read_bytes(), CASE.name), folder, 8, 100)


def make_mutant(base, name, target):
    """Write a mutant of the folder `base` to the folder `target`, and return `target`."""
    shutil.copytree(base, target)
    MUTANTS[name].change(target)
    return target
