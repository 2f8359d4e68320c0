"""The exact sum of one rank's values, and of two ranks', beside a plain @njit loop over them."""

from bench.cases.grid import parametrize
from bench.plan import Figure, Job
from bench.ranks.exact_sum import KINDS, PLAIN_LOOP, ExactSum

ESSENTIALS = [("similar magnitude", "float64", 1_000_000)]
FULL = [(kind, "float64", count) for kind in KINDS for count in (100, 10_000, 1_000_000)]
FULL += [("similar magnitude", "float32", 1_000_000)]


def pytest_generate_tests(metafunc):
    full = metafunc.config.getoption("full")
    figures = []
    for ranks in (1, 2) if full else (1,):
        job = Job(ranks, "openmpi", "ranks.exact_sum")
        for kind, dtype, count in FULL if full else ESSENTIALS:
            asked = ExactSum(kind, dtype, count)
            label = f"exact_sum of {count:,} {dtype}, {kind}"
            figures += [Figure(job, asked, s, label, "exact_sum") for s in ("shm", PLAIN_LOOP)]
    parametrize(metafunc, figures)


def test_exact_sum(record_figure):
    record_figure()
