"""The exact sum of one rank's values beside a plain @njit loop over them.

python -m pytest bench/cases/test_exact_sum.py
"""

from bench.plan import Figure, Job
from bench.ranks.exact_sum import KINDS, PLAIN_LOOP, ExactSum

ROWS = [(kind, "float64", count) for kind in KINDS for count in (100, 10_000, 1_000_000)]
ROWS += [("similar magnitude", "float32", 1_000_000)]


def figures():
    job = Job(1, "openmpi", "ranks.exact_sum")
    for kind, dtype, count in ROWS:
        asked = ExactSum(kind, dtype, count)
        label = f"exact_sum of {count:,} {dtype}, {kind}"
        yield from (Figure(job, asked, side, label, "exact_sum") for side in ("shm", PLAIN_LOOP))


FIGURES = {"test_exact_sum": figures}


def test_exact_sum(record_figure):
    record_figure()
