"""Tables of statistics over several ranks: by operation, and by phase."""

from __future__ import annotations

from collections.abc import Sequence

from cobre_comm.errors import named
from cobre_comm.journal.copied import OUTSIDE_ROW, OWN_ROW
from cobre_comm.journal.stats import (
    NO_CALLS,
    WAITED_FOR,
    OperationStats,
    PhaseStats,
    Stats,
    noteworthy,
)
from cobre_comm.journal.texts import (
    aligned,
    bytes_text,
    mean,
    seconds_text,
    spread_text,
)

_NOT_ENTERED = PhaseStats(0, 0.0, NO_CALLS)


def table_of_ranks(title: str, ranks: Sequence[Stats]) -> str:
    """Return the table over all ranks: least, mean and most, and the rank that is waited for.

    The first line begins with ``title``. ``ranks`` are the statistics of the known ranks, at least
    of one.
    """
    lines = [f"{title}: {_of(ranks)}", *_table_of_operations(ranks), *table_of_phases(ranks)]
    if any(WAITED_FOR in line for line in lines):
        lines.append("more: cobre-comm explain uneven")
    return "\n".join(lines)


def _table_of_operations(ranks: Sequence[Stats]) -> list[str]:
    titles = ("operation", "calls", "bytes", "waiting: least", "mean", "most", "transferring: mean")
    rows, sentences = [titles], []
    for name in dict.fromkeys(name for stats in ranks for name in stats.operations):
        each = [stats.operations[name] for stats in ranks if name in stats.operations]
        waits = [s.waiting_s for s in each]
        rows.append(
            (
                name,
                str(max(s.calls for s in each)),
                bytes_text(sum(s.nbytes for s in each)),
                seconds_text(min(waits)),
                seconds_text(mean(waits)),
                seconds_text(max(waits)),
                seconds_text(mean([s.transferring_s for s in each])),
            )
        )
        sentences += _straggler(each, [s.total_s for s in each], operation=name)
    return [*aligned(rows), *sentences]


def table_of_phases(ranks: Sequence[Stats]) -> list[str]:
    """Return the lines of the table of phases; none for a program without phases.

    If a rank has not entered a phase, its time of computing in that phase is 0 s. ``ranks`` are the
    statistics of the known ranks.
    """
    rows = [("phase", "entered", "computing", "waiting", "transferring", "imbalance")]
    sentences = []
    for name, each in phases_of(ranks).items():
        computing = [phase.computing_s for phase in each]
        rows.append(
            (
                name,
                str(max(phase.entered for phase in each)),
                spread_text(computing),
                spread_text([phase.waiting_s for phase in each]),
                spread_text([phase.transferring_s for phase in each]),
                f"{100 * imbalance(computing):.0f} %",
            )
        )
        collectives = [phase.collectives for phase in each]
        sentences += _straggler(collectives, [phase.total_s for phase in each], phase=name)
    if len(rows) == 1:
        return []
    return ["least, mean and most of these ranks, by phase:", *aligned(rows), *sentences]


def phases_of(ranks: Sequence[Stats]) -> dict[str, list[PhaseStats]]:
    """Return for each phase the numbers of the ranks; the program's own phases come first."""
    names = dict.fromkeys(name for stats in ranks for name in stats.phases)
    in_order = sorted(names, key=lambda name: name in (OUTSIDE_ROW, OWN_ROW))
    return {name: [stats.phases.get(name, _NOT_ENTERED) for stats in ranks] for name in in_order}


def imbalance(computing: Sequence[float]) -> float:
    """Return the share of the longest computing that equal shares would save: 1 - mean / most.

    ``computing`` has the seconds of each rank. The load balance of the POP metrics is mean / most,
    so the two numbers add up to 1.

    Source: M. Wagner et al., "A Structured Approach to Performance Analysis", Tools for High
    Performance Computing 2017, Springer (2019).
    """
    most = max(computing)
    return 1.0 - mean(computing) / most if most > 0.0 else 0.0


def _of(ranks: Sequence[Stats]) -> str:
    """Say which ranks a table covers, and which it lacks."""
    known, size = sorted(stats.rank for stats in ranks), ranks[0].size
    if len(known) == size:
        return "1 rank" if size == 1 else f"{size} ranks"
    missing = [rank for rank in range(size) if rank not in known]
    return f"{named(known)} of {size}; without {named(missing)}, which this rank cannot read"


def _straggler(
    each: Sequence[OperationStats], totals_s: Sequence[float], operation: str = "", phase: str = ""
) -> list[str]:
    """Say which rank the others waited for longest, by the numbers of the rank that waited most.

    ``each`` has the statistics of every rank, for one operation or in one phase. The wait must be a
    noteworthy share of ``totals_s``, the seconds of each rank. Either ``operation`` or ``phase`` is
    given.
    """
    together: dict[int, float] = {}
    for stats in each:
        for rank, seconds in stats.waited_for_s.items():
            together[rank] = together.get(rank, 0.0) + seconds
    if not together:
        return []
    worst = max(together, key=together.__getitem__)
    told = [pair for pair in zip(each, totals_s, strict=True) if worst in pair[0].waited_for_s]
    stats, total_s = max(told, key=lambda pair: pair[0].waited_for_s[worst])
    return noteworthy(stats, worst, total_s, operation, phase)
