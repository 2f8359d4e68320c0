"""Turns the rows of a trace into events of the Chrome trace format, which Perfetto opens.

A file of rows begins with a line of JSON about its rank, padded to whole rows. A Chrome trace is
one array of events, so ``jq -s add`` joins the traces of several ranks. Times are microseconds
since :data:`EPOCH_S`, with three decimals. They are computed as integers of nanoseconds, because a
float64 distinguishes nanoseconds for 104 days only.

Source: "Trace Event Format" (Chromium), JSON Array Format, complete events.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from cobre_kernels.collective.calls import own_call
from cobre_kernels.collective.seeing.journal import IN_LIBRARY, NAME_BYTES
from cobre_kernels.collective.seeing.trace import (
    MOMENT,
    NAME_OFFSET,
    PHASE_LEFT,
    PHASE_NAMED,
    TRACED_CALL,
)
from cobre_kernels.machine.record import WORD_BYTES
from numpy.typing import NDArray

from cobre_comm.journal.copied import OWN_ROW, PastCall, describe
from cobre_comm.system.log import logger

EPOCH_S = 1_767_225_600  # 2026-01-01 00:00 UTC
ROW_BYTES: int = TRACED_CALL.size_bytes
_WRITTEN = {"rank", "communicator", "size", "own_rank", "host", "pid", "unix_ns"}
KILLED = "its process was killed: its last calls are missing"
_EPOCH_NS = EPOCH_S * 1_000_000_000


def header_bytes(about: Mapping[str, Any]) -> bytes:
    """Return the line with which a file of rows begins."""
    line = json.dumps(about).encode()
    return line.ljust(-(-(len(line) + 1) // ROW_BYTES) * ROW_BYTES - 1) + b"\n"


def add_to_trace(calls: Path, trace: Path, remark: str, failed: PastCall | None = None) -> None:
    """Add the calls of one communicator to the Chrome trace of its rank.

    If the last row of ``calls`` is cut short, the row is left out. ``trace`` is an array of events,
    or empty. ``remark`` is shown beside the rank's name, and ``failed`` is the call that broke the
    communicator.

    ``ValueError`` is raised, and nothing is written, if ``calls`` is no file of rows. ``OSError``
    is raised if a file cannot be read or written.
    """
    about, rows = _read(calls)
    with trace.open("r+b" if trace.exists() else "w+b") as file:
        end = file.seek(0, 2)
        separator = "[\n"
        if end > 0:
            file.seek(end - len("\n]\n"))
            separator = ",\n"
        events = _names(about, remark), _failure(about, failed), _phases(about, rows)
        place = f'"pid":{about["rank"]},"tid":{about["communicator"]}'
        for event in itertools.chain(*events, _calls(about, rows)):
            file.write(f"{separator}{{{event},{place}}}".encode())
            separator = ",\n"
        file.write(b"\n]\n")


def move_to_trace(calls: Path, trace: Path, remark: str, failed: PastCall | None = None) -> str:
    """Add a file of calls to a Chrome trace, and remove the file; return an error's text, or ""."""
    try:
        add_to_trace(calls, trace, remark, failed)
        calls.unlink()
    except (OSError, ValueError) as error:
        return str(error.strerror if isinstance(error, OSError) else error)
    return ""


def add_what_is_left(folder: Path, job: str, ranks: Iterable[int]) -> None:
    """Make Chrome traces of the files that the killed ranks of a job have left.

    If a file is named like these but has other content, it stays, and a line of the log names it.
    """
    for rank in ranks:
        for calls in sorted(folder.glob(f"{job}.rank-{rank}[.-]*.calls")):
            name = calls.name.rsplit(".", 2)[0]
            why = move_to_trace(calls, folder / f"{name}.json", KILLED)
            if why:
                logger.warning("the trace of rank %d stays in %s: %s", rank, calls, why)


def _read(calls: Path) -> tuple[Mapping[str, Any], NDArray[np.int64]]:
    """Return the first line of a file as data, and its rows; ``ValueError`` if it has no rows."""
    if not calls.is_file():
        raise ValueError("it is no file")
    data = calls.read_bytes()
    begin = data.find(b"\n") + 1
    try:
        about = json.loads(data[:begin])
        begins_well = about.keys() >= _WRITTEN
    except (ValueError, AttributeError):
        begins_well = False
    if not begins_well:
        raise ValueError("it does not begin with a line about a rank")
    count = (len(data) - begin) // ROW_BYTES
    words = np.frombuffer(data, np.int64, count * ROW_BYTES // WORD_BYTES, begin)
    rows = words.reshape(count, ROW_BYTES // WORD_BYTES)
    if not (rows[:, 0] == MOMENT).any():
        raise ValueError("it holds no call yet")
    try:
        for signature in set(rows[rows[:, 0] > 0, 1].tolist()):
            _described(signature)
    except LookupError:
        raise ValueError("it holds calls that do not exist") from None
    return about, rows


# The next functions yield the members of each event, without its place: ``pid`` and ``tid``.
def _names(about: Mapping[str, Any], remark: str) -> Iterator[str]:
    rank, communicator = about["rank"], about["communicator"]
    name = f"rank {rank} ({about['host']}, process {about['pid']})"
    yield _named("process_name", {"name": f"{name}: {remark}" if remark else name})
    yield _named("process_sort_index", {"sort_index": rank})
    name = f"communicator {communicator}: rank {about['own_rank']} of {about['size']}"
    yield _named("thread_name", {"name": name})


def _named(kind: str, said: Mapping[str, Any]) -> str:
    return json.dumps({"name": kind, "ph": "M", "args": said})[1:-1]


def _failure(about: Mapping[str, Any], failed: PastCall | None) -> Iterator[str]:
    if failed is not None:
        at = failed.entered_ns + about["unix_ns"] - _EPOCH_NS
        said = f'"ph":"i","s":"t","ts":{_in_us(at)},"args":{{"call":{failed.number}}}'
        yield f'"name":"{failed.operation} (failed)",{said}'


def _phases(about: Mapping[str, Any], rows: NDArray[np.int64]) -> Iterator[str]:
    """Yield a span for each stay in a phase; the spans of calls are inside these."""
    names = {IN_LIBRARY: OWN_ROW}
    for row in rows[rows[:, 0] == PHASE_NAMED]:
        letters = row.tobytes()[NAME_OFFSET : NAME_OFFSET + NAME_BYTES]
        names[int(row[1])] = letters.rstrip(b"\0").decode(errors="replace")
    left = rows[rows[:, 0] == PHASE_LEFT]
    times = (_nanoseconds(left[:, at], rows, about["unix_ns"]) for at in (4, 5))
    for number, begin, end in zip(left[:, 1].tolist(), *times, strict=True):
        name = json.dumps(names.get(number, f"phase {number}"))
        yield f'"name":{name},"cat":"phase",{_span(begin, end)}'


def _calls(about: Mapping[str, Any], rows: NDArray[np.int64]) -> Iterator[str]:
    calls = rows[rows[:, 0] > 0]
    times = (_nanoseconds(calls[:, column], rows, about["unix_ns"]) for column in (4, 5, 6))
    for call, entered, left, came in zip(calls.tolist(), *times, strict=True):
        number, signature, count, size_bytes, _, _, waited, last = call
        name, details = _described(signature)
        said = f'"call":{number},"count":{count},"bytes":{size_bytes}{details}'
        yield f'"name":"{name}",{_span(entered, left)},"args":{{{said}}}'
        if waited:
            yield f'"name":"wait for rank {last}",{_span(entered, came)}'


def _nanoseconds(ticks: NDArray[np.int64], rows: NDArray[np.int64], unix_ns: int) -> list[int]:
    """Return nanoseconds since ``EPOCH_S``, interpolated between the moments of the trace."""
    moments = rows[rows[:, 0] == MOMENT]
    first_tick, first_ns = int(moments[0, 1]), int(moments[0, 2])
    since = np.interp(ticks - first_tick, moments[:, 1] - first_tick, moments[:, 2] - first_ns)
    times: list[int] = (np.rint(since).astype(np.int64) + (first_ns + unix_ns - _EPOCH_NS)).tolist()
    return times


def _span(begin_ns: int, end_ns: int) -> str:
    return f'"ph":"X","ts":{_in_us(begin_ns)},"dur":{_in_us(end_ns - begin_ns)}'


def _in_us(ns: int) -> str:
    """Return nanoseconds as a JSON number of microseconds."""
    return f"{ns // 1000}.{ns % 1000:03d}"


@functools.cache
def _described(signature: int) -> tuple[str, str]:
    """Return the operation of a signature, and the rest of it as members of a JSON object."""
    operation, dtype, argument = describe(signature)
    said = {"dtype": dtype, "argument": argument, "of": own_call(signature)}
    members = [f',"{name}":{json.dumps(value)}' for name, value in said.items() if value]
    return operation, "".join(members)
