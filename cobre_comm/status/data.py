"""The jobs as the data that the live page draws."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from statistics import fmean
from typing import Any

import cobre_comm
from cobre_comm.journal.copied import OUTSIDE_ROW, OWN_ROW, PastCall
from cobre_comm.journal.stats import stats_of
from cobre_comm.journal.tables import imbalance, phases_of
from cobre_comm.status.find import SeenRank
from cobre_comm.status.jobs import SeenJob, age_s, doing, state_of, waits

_OUTSIDE = (OUTSIDE_ROW, OWN_ROW)  # names of the time in no phase of the program
_CALLS = 5  # calls of a rank that are shown; the page has no room for all 64


def as_data(jobs: Iterable[SeenJob]) -> dict[str, Any]:
    """Return what the page shows, fit for JSON: without NaN, and with times in seconds ago."""
    return {
        "host": os.uname().nodename,
        "version": cobre_comm.__version__,
        "jobs": [_job(job) for job in jobs],
    }


def _job(job: SeenJob) -> dict[str, Any]:
    first = job.ranks[0]
    return {
        "key": f"{job.name} {job.communicator} {first.journal.pid} {first.journal.born_ns}",
        "name": job.name,
        "communicator": job.communicator,
        "backend": job.backend,
        "size": job.size,
        "unseen": job.unseen,
        "waits": waits(job.ranks),
        "ranks": [_rank(seen) for seen in job.ranks],
        "phases": _phases(job),
        "reports": [_reports(seen) for seen in job.ranks if seen.reports is not None],
    }


def _rank(seen: SeenRank) -> dict[str, Any]:
    own = seen.journal
    return {
        "rank": own.rank,
        "pid": None if seen.process is None else seen.process.pid,
        "state": state_of(seen),
        "phase": own.phase,
        "doing": doing(seen),
        "calls": [_call(call, own.read_ns) for call in own.calls[-_CALLS:][::-1]],
        **_time(seen),
    }


def _time(seen: SeenRank) -> dict[str, float]:
    """Return the seconds of a rank in the phases of its program.

    A call under way counts as waiting. If the program has no phases, the seconds are those since
    the rank's communicator was made.
    """
    own = seen.journal
    stats = stats_of(own.copied)
    inside = [p for name, p in stats.phases.items() if name not in _OUTSIDE]
    each = [p.collectives for p in inside] or stats.operations.values()
    waiting, moving = (sum(getattr(s, n) for s in each) for n in ("waiting_s", "transferring_s"))
    is_counted = own.phase not in _OUTSIDE or not inside
    if is_counted and own.calls and own.calls[-1].left_ns is None and own.ended is None:
        waiting += age_s(own.read_ns, own.calls[-1].entered_ns)
    computing = age_s(own.read_ns, own.born_ns) - waiting - moving
    return {
        "computing_s": max(0.0, sum(p.computing_s for p in inside) if inside else computing),
        "waiting_s": waiting,
        "transferring_s": moving,
    }


def _call(call: PastCall, now_ns: int) -> dict[str, Any]:
    left = call.left_ns
    return {
        "call": str(call),
        "ago_s": age_s(now_ns, call.entered_ns if left is None else left),
        "took_s": None if left is None else age_s(left, call.entered_ns),
    }


def _phases(job: SeenJob) -> list[dict[str, Any]]:
    return [
        {
            "phase": name,
            "entered": max(phase.entered for phase in each),
            "computing_s": fmean(phase.computing_s for phase in each),
            "waiting_s": fmean(phase.waiting_s for phase in each),
            "transferring_s": fmean(phase.transferring_s for phase in each),
            "imbalance": imbalance([phase.computing_s for phase in each]),
        }
        for name, each in phases_of(job.stats()).items()
    ]


def _reports(seen: SeenRank) -> dict[str, Any]:
    """Return what a rank has reported; a number that JSON cannot represent is null."""
    reports, now_ns = seen.reports, seen.journal.read_ns
    assert reports is not None
    return {
        "rank": seen.journal.rank,
        "names": reports.names,
        "ago_s": [age_s(now_ns, time_ns) for time_ns in reports.times_ns],
        "values": [[v if math.isfinite(v) else None for v in row] for row in reports.values],
    }
