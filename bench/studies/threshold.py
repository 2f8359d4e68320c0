"""Find the size at which the ring begins to beat the mesh on one machine (eager bytes).

    python -m bench.studies threshold [-n 2 4]

The ranks hold two communicators, which take turns block by block. One sends everything around the
ring, the other (named "star") everything behind headers. For allgatherv, KiB are those of all ranks
together. Between machines: `python -m bench.studies hosts`.
"""

from bench.cases.grid import figures_of, jobs_of
from bench.plan import size_label
from bench.ranks.collectives import Collective
from bench.ranks.work import Case
from bench.report.pages import Column, Table
from bench.studies.study import measure, parser_of

SIZES = [1024 * kib for kib in (4, 8, 16, 32, 64, 128, 256)]
OPERATIONS = {"allgatherv": "allgatherv", "broadcast": "broadcast", "allreduce": "sum"}
SETTING = "one machine"


def figures(ranks: int):
    cases = [
        Case(
            f"{name} {size_label(nbytes)}",
            operation,
            nbytes // (ranks if operation == "allgatherv" else 1) // 8 * 8,
        )
        for name, operation in OPERATIONS.items()
        for nbytes in SIZES
    ]
    asked = [Collective(case, ("ring", "star")) for case in cases]
    return figures_of(jobs_of([ranks], ["openmpi"]), asked, setting=SETTING)


def main() -> None:
    options = parser_of(__doc__, ranks=[2, 4]).parse_args()
    columns = [
        Column(f"{n} ranks, ring / star", n, "openmpi", SETTING, "star", "ring")
        for n in options.ranks
    ]
    asked = [figure for ranks in options.ranks for figure in figures(ranks)]
    measure("threshold", asked, options, Table(tuple(columns)))
