"""The launcher's last lines, and its exit status."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from cobre_comm.common.alike import alike
from cobre_comm.errors import named, signal_name
from cobre_comm.processes.endings import (
    STARTER,
    Ending,
    describe,
    exit_status,
    first_failure,
    name_of,
)
from cobre_comm.processes.group import Group

TAIL_LINES = 40
MOST_TEXTS = 8


def by_signal(group: Group, interrupts: Mapping[int, bytes]) -> tuple[int, list[str]]:
    """Return status and last lines of a job that a signal has ended.

    Parameters
    ----------
    group : Group
        The ranks that ran here, which have all ended.
    interrupts : mapping of int to bytes
        The tracebacks of Ctrl-C of ranks, which are not shown yet.
    """
    lines = [f"ended by {signal_name(group.escalation.cause)}"]
    if group.killed:
        waited_s = round(group.escalation.ended_by_us - group.escalation.began, 1)
        lines.append(f"still running after {waited_s:g} s, killed: {named(group.killed)}")
    told = _in_few([([rank], last_lines(text)) for rank, text in sorted(interrupts.items())])
    told |= _tracebacks(group.endings)
    words = [_quoted(whose, said) for whose, said in told.items()]
    return 128 + group.escalation.cause, [*words, *lines]


def by_ranks(
    group: Group,
    endings: Sequence[Ending],
    starter: Ending | None,
    tails: Mapping[int, bytes],
    shown: Iterable[int],
) -> tuple[int, list[str]]:
    """Return exit status and last lines of a job that its ranks have ended.

    Parameters
    ----------
    group : Group
        The ranks that ran here, which have all ended.
    endings : sequence of Ending
        Those that count: of all ranks, or of those that have survived a loss.
    starter : Ending or None
        The ending of ``mpiexec``, if it has ended the job.
    tails : mapping of int to bytes
        The end of the stderr of each rank, where it is known.
    shown : iterable of int
        The lost ranks that were asked to show where in their code they were.
    """
    by_themselves = [e for e in endings if e.at <= group.escalation.ended_by_us]
    if starter is not None:
        by_themselves = with_abort(by_themselves, starter)
    first = first_failure(by_themselves) or first_failure(endings)
    if first is None:
        return 0, [_quoted(whose, said) for whose, said in _tracebacks(group.endings).items()]
    reported = [ending for ending in endings if ending.report and ending.report.trace]
    silent = set(shown) - {first.rank, *(ending.rank for ending in reported)}
    speaker = first
    if first.rank == STARTER:  # it knows no cause, but a rank does
        speaker = min(reported, key=lambda ending: ending.at, default=first)
    told = _tracebacks(group.endings, speaker)
    words = {f"rank {r}, which did not come": last_lines(tails.get(r, b"")) for r in silent}
    if speaker.report is None or not speaker.report.is_held:
        told[name_of(speaker.rank)] = last_words(speaker, tails.get(speaker.rank, b""))
    lines, name = [], name_of(first.rank)
    began = {rank.rank for rank in group.ranks if rank.pid}
    same = first.report.cause if first.report is not None and first.report.trace else None
    after = [
        ending.rank
        for ending in by_themselves
        if ending.code
        and ending.rank in began - {first.rank}
        and (same is None or ending.report is None or ending.report.cause != same)
    ]
    if after:
        lines.append(f"{named(after)} failed after {name} had")
    lines += [_quoted(whose, said) for whose, said in {**words, **told}.items() if said]
    was_started = first.rank == STARTER or first.rank in began
    lines.append(describe(first) if was_started else f"{name} was not started by mpiexec")
    return exit_status(first.code), lines


def _tracebacks(endings: Iterable[Ending], speaker: Ending | None = None) -> dict[str, list[str]]:
    """Return the tracebacks that ranks have left to the launcher, equal mistakes once, by name.

    The mistake of the speaker comes last.
    """
    held = {e.rank: e.report for e in endings if e.report is not None and e.report.is_held}
    last = speaker.rank if speaker is not None else STARTER
    groups = alike(held, lambda report: report.cause)
    return _in_few([(ranks, report.trace.rstrip().splitlines()) for ranks, report in groups], last)


def _in_few(
    texts: Iterable[tuple[list[int], list[str]]], last: int = STARTER
) -> dict[str, list[str]]:
    """Return at most ``MOST_TEXTS`` of the texts of ranks, by the names of these ranks.

    Of more than that, texts that begin alike are shown once: with as many equal lines as leave so
    few. The text of the rank ``last`` is shown, and comes last.
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


def with_abort(endings: Sequence[Ending], starter: Ending) -> list[Ending]:
    """Return the endings of ranks and ``mpiexec``, when ``mpiexec`` has ended the job.

    It does so by itself because a rank called MPI_Abort, with the code that ``mpiexec`` then exits
    with. A rank that did so for an exception has reported that. Any other rank is the first to end
    for a cause of its own. Its exit code does not count: in MPICH the call may return.
    """
    first = first_failure(endings)
    has_reported = any(ending.report for ending in endings)
    if first is None or first.secondary or has_reported or starter.code < 0:
        return [*endings, starter]
    aborted = replace(first, code=starter.code)
    return [aborted if ending is first else ending for ending in endings]


def last_words(ending: Ending, tail: bytes) -> list[str]:
    """Return the traceback that a rank has reported, or else the end of its stderr."""
    if ending.report is not None and ending.report.trace and tail:
        return ending.report.trace.rstrip().splitlines()
    return last_lines(tail)


def last_lines(tail: bytes) -> list[str]:
    """Return the last lines of a rank's stderr, as a terminal shows them."""
    text = re.sub(r"[^\n]*\r(?!\n)", "", tail.decode(errors="replace"))  # progress bars
    return text.rstrip().splitlines()[-TAIL_LINES:]
