"""The report of a campaign: results by backend, and after how long survivors learned of a loss."""

import collections
import re
import statistics

from bench.report.text import filled


def report(results, broken, skipped, options):
    """Print the tables; write them where the options say."""
    lines = [*_table(results), "", *_times(results)]
    misses = sum(bool(result.verdict.problems) for result in results) + broken
    lines.append(f"\n{len(results)} faults, {misses} misses, {len(skipped)} skipped"
                 + "".join(f": {reason}" for reason in sorted(set(skipped))))  # fmt: skip
    print("\n".join(lines))
    if options.page:
        write(options.page, bool(options.busy), "\n".join([_command(options, results), "", *lines]))


def write(page, is_busy, text):
    """Replace the page's part for a quiet machine, or its part for a busy machine."""
    wanted = "campaign", "busy" if is_busy else "quiet"
    made = filled(page.read_text(), lambda *part: f"\n{text}\n" if part[:2] == wanted else None)
    if text not in made:
        raise ValueError(f"{page} has no part for a {wanted[1]} machine")
    page.write_text(made)


def _command(options, results):
    minutes = sum(result.took_s for result in results) / 60 / max(1, options.workers)
    busy = f" --busy {options.busy}" if options.busy else ""
    beside = f", beside {options.busy} processes that compute" if options.busy else ""
    return (
        f"`python -m tests.campaign --faults {options.faults} --seed {options.seed}{busy}`: "
        f"about {minutes:.0f} minutes{beside}."
    )


def _table(results):
    """Count faults and misses, all variants of a backend together, and name the missed kinds."""
    struck, missed = collections.defaultdict(collections.Counter), collections.Counter()
    for result in results:
        struck[_family(result)][result.fault.kind] += 1
        missed[_family(result), result.fault.kind] += bool(result.verdict.problems)
    yield "| backend | faults | misses | kinds | least of a kind |"
    yield "|---|---|---|---|---|"
    for backend, kinds in sorted(struck.items()):
        misses = sum(missed[backend, kind] for kind in kinds)
        figures = (kinds.total(), misses, len(kinds), min(kinds.values()))
        yield f"| {backend} | {' | '.join(map(str, figures))} |"
    for (backend, kind), count in sorted(missed.items()):
        if count:
            yield f"\nMissed over {backend}: {kind}, {count} of {struck[backend][kind]}."


def _family(result):
    return re.sub(r"(-net|-flat)?(:.*)?$", "", result.fault.backend)


def _times(results):
    yield "From a fault to the error on a survivor, in ms:"
    yield ""
    yield "| backend | errors | p50 | p95 | longest |"
    yield "|---|---|---|---|---|"
    for backend in sorted({result.fault.backend for result in results}):
        times = [
            1000 * time_s
            for result in results
            if result.fault.backend == backend and result.fault.moment != "start"
            for time_s in result.verdict.times
        ]
        figures = " | ".join(f"{figure:.1f}" for figure in _percentiles(times))
        yield f"| {backend} | {len(times)} | {figures} |"


def _percentiles(times):
    """Return the median, the 95th percentile and the longest of some times."""
    if not times:
        return 0.0, 0.0, 0.0
    cuts = statistics.quantiles(times, n=20, method="inclusive") if len(times) > 1 else times * 20
    return statistics.median(times), cuts[-1], max(times)
