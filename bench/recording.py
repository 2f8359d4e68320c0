"""Record measured seconds as benchmarks of pytest-benchmark.

Ranks are processes of their own, so nothing is timed in the process of pytest: a job hands back its
samples, and each sample is replayed as one round. A test asks for the fixture ``record``::

    def test_barrier(record):
        record(
            [2.1e-7, 2.0e-7],            # seconds per call, one number for each block
            label="barrier", operation="barrier", ranks=2, side="cobre_comm", backend="shm",
            beside="openmpi", ratio_to={"Open MPI": ratios(ours, theirs)},
        )

Only a test that has this fixture gets the clock that replays; ``benchmark(f)`` times f as usual. If
a figure is no time per call, the test passes ``value=`` and ``unit=`` beside the seconds from which
the figure comes.
"""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Iterable, Sequence

import numpy as np

from bench.ranks.timing import FEWEST_BLOCKS, FEWEST_CALLS

_now_s = 0.0


def replayed_clock() -> float:
    """Stands for perf_counter: each round begins at 0, so that its sample is not rounded."""
    return _now_s


def _set_clock(seconds: float) -> None:
    global _now_s
    _now_s = seconds


def record(benchmark, samples_s: Iterable[float], **told) -> None:
    """Note measured seconds per call as the rounds of this benchmark.

    All other arguments go to ``extra_info``, with the command that repeats the measurement.
    """
    samples = [float(sample) for sample in samples_s]
    command = f"python -m pytest {shlex.quote(benchmark.fullname)}"
    info = extra_info(samples, **told, command=command)
    beside = f", beside {info['beside']}" if info["beside"] else ""
    benchmark.group = f"{info['label']}, {info['ranks']} ranks{beside}"
    benchmark.extra_info.update(info)
    rest = iter(samples)
    benchmark.pedantic(
        lambda: _set_clock(next(rest)), setup=lambda: _set_clock(0.0), rounds=len(samples)
    )
    if benchmark.enabled and benchmark.stats.stats.data != samples:
        raise AssertionError("the samples were not replayed: does the test ask for `record`?")


def extra_info(
    samples_s: Sequence[float],
    *,
    label: str,
    operation: str,
    ranks: int,
    side: str,
    moved_bytes: int | None = None,
    calls: int | None = None,
    **more,
) -> dict:
    """Return the facts of a figure in the words of ``bench.report.data.Record``, with percentiles.

    A rank receives ``moved_bytes`` in one call, and ``bytes_per_s`` is that at the median time.
    ``calls`` is the number of calls in each block of sides that took turns; a figure of too few
    calls is refused.
    """
    blocks = len(samples_s)
    if calls and too_few(blocks, blocks * calls):
        raise ValueError(
            f"{label}, {side}: {blocks} blocks of {calls} calls are too few for a figure, which "
            f"needs {FEWEST_BLOCKS} blocks and {FEWEST_CALLS} calls"
        )
    p50, p99 = np.percentile(samples_s, [50, 99])
    return {
        "blocks": blocks,
        "calls": blocks * calls if calls else None,
        "label": label,
        "operation": operation,
        "ranks": ranks,
        "side": side,
        "beside": None,
        "bytes": 0,
        "backend": None,
        "p50_s": float(p50),
        "p99_s": float(p99),
        "bytes_per_s": moved_bytes / float(p50) if moved_bytes else None,
        **more,
    }


def too_few(blocks: int | None, calls: int | None) -> bool:
    """Whether a figure has so few blocks or calls that the median says nothing."""
    known = blocks is not None and calls is not None
    return known and (blocks < FEWEST_BLOCKS or calls < FEWEST_CALLS)


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    """Return the ratio of the medians, and quartiles of the ratios of neighbouring blocks."""
    each = [a / b for a, b in zip(ours, theirs, strict=True)]
    if len(each) == 1:
        each *= 2
    low, _, high = statistics.quantiles(each, n=4, method="inclusive")
    return {"median": statistics.median(ours) / statistics.median(theirs), "low": low, "high": high}
