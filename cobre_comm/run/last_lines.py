"""The launcher's last lines, and its exit status."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from cobre_comm.errors import named, signal_name
from cobre_comm.processes.attempt import Attempt
from cobre_comm.processes.endings import (
    STARTER,
    Ending,
    describe,
    exit_status,
    name_of,
)
from cobre_comm.reports.alike import alike

TAIL_LINES = 40
MOST_TEXTS = 8


def by_signal(attempt: Attempt, interrupts: Mapping[int, bytes]) -> tuple[int, list[str]]:
    """Return the exit status and the last lines of a job that a signal has ended.

    ``interrupts`` are the tracebacks of Ctrl-C, by rank, which have not been shown yet.
    """
    lines = [f"ended by {signal_name(attempt.escalation.cause)}"]
    if attempt.killed:
        waited_s = round(attempt.escalation.ended_by_us - attempt.escalation.began, 1)
        lines.append(f"still running after {waited_s:g} s, killed: {named(attempt.killed)}")
    told = _in_few([([rank], last_lines(text)) for rank, text in sorted(interrupts.items())])
    told |= _tracebacks(attempt.endings)
    words = [_quoted(whose, said) for whose, said in told.items()]
    return 128 + attempt.escalation.cause, [*words, *lines]


def by_ranks(attempt: Attempt, tails: Mapping[int, bytes]) -> tuple[int, list[str]]:
    """Return the exit status and the last lines of a job that its ranks have ended.

    ``tails`` has the end of each rank's stderr, if it is known. The lines say, in this order: which
    ranks failed after the first one; what was written by ranks that others have lost and that have
    reported nothing; the tracebacks; the last words of the speaker, which is the rank whose failure
    explains the end of the job; how the rank that failed first ended.
    """
    first, by_themselves = attempt.failure, attempt.by_themselves
    if first is None:
        return 0, [_quoted(whose, said) for whose, said in _tracebacks(attempt.endings).items()]
    reported = [ending for ending in attempt.decisive if ending.report and ending.report.trace]
    silent = attempt.shown - {first.rank, *(ending.rank for ending in reported)}
    speaker = first
    if first.rank == STARTER:  # mpiexec knows no cause, so a rank speaks
        speaker = min(reported, key=lambda ending: ending.at, default=first)
    told = _tracebacks(attempt.endings, speaker)
    words = {f"rank {r}, which did not come": last_lines(tails.get(r, b"")) for r in silent}
    if speaker.report is None or not speaker.report.is_held:
        told[name_of(speaker.rank)] = last_words(speaker, tails.get(speaker.rank, b""))
    lines, name = [], name_of(first.rank)
    same = first.report.cause if first.report is not None and first.report.trace else None
    after = [
        ending.rank
        for ending in by_themselves
        if ending.code
        and ending.rank not in (first.rank, STARTER)
        and (same is None or ending.report is None or ending.report.cause != same)
    ]
    if after:
        lines.append(f"{named(after)} failed after {name} had")
    lines += [_quoted(whose, said) for whose, said in {**words, **told}.items() if said]
    lines.append(describe(first))
    return exit_status(first.code), lines


def _tracebacks(endings: Iterable[Ending], speaker: Ending | None = None) -> dict[str, list[str]]:
    """Return the tracebacks that ranks have left to the launcher, by the names of these ranks.

    A mistake that several ranks have made appears once. The mistake of the speaker is the last.
    """
    held = {e.rank: e.report for e in endings if e.report is not None and e.report.is_held}
    last = speaker.rank if speaker is not None else STARTER
    groups = alike(held, lambda report: report.cause)
    return _in_few([(ranks, report.trace.rstrip().splitlines()) for ranks, report in groups], last)


def _in_few(
    texts: Iterable[tuple[list[int], list[str]]], last: int = STARTER
) -> dict[str, list[str]]:
    """Return at most ``MOST_TEXTS`` of the texts of ranks, by the names of these ranks.

    If there are more texts, one text stands for all that begin with the same lines. As many lines
    as possible are compared without leaving too many texts. The text of the rank ``last`` comes at
    the end.
    """
    known = list(texts)
    depth = max((len(text) for _, text in known), default=0)
    while True:
        found: dict[Sequence[str], list[tuple[list[int], list[str]]]] = {}
        for ranks, text in known:
            found.setdefault(tuple(text[:depth]), []).append((ranks, text))
        if len(found) <= MOST_TEXTS:
            break
        depth -= 1
    told = {}
    for together in sorted(found.values(), key=lambda group: any(last in r for r, _ in group)):
        ranks, text = next((each for each in together if last in each[0]), together[0])
        same = sorted(r for others, other in together if other == text for r in others)
        alike_ones = sorted(r for others, other in together if other != text for r in others)
        more = f" (those of {named(alike_ones)} begin alike)" if alike_ones else ""
        told[named(same) + more] = text
    return told


def _quoted(whose: str, said: Sequence[str]) -> str:
    return "\n    ".join([f"the last words of {whose}:", *said])


def last_words(ending: Ending, tail: bytes) -> list[str]:
    """Return the traceback that a rank has reported, or otherwise the end of its stderr."""
    if ending.report is not None and ending.report.trace and tail:
        return ending.report.trace.rstrip().splitlines()
    return last_lines(tail)


def last_lines(tail: bytes) -> list[str]:
    """Return the last lines of a rank's stderr, as a terminal shows them."""
    text = re.sub(r"[^\n]*\r(?!\n)", "", tail.decode(errors="replace"))  # drops old progress bars
    return text.rstrip().splitlines()[-TAIL_LINES:]
