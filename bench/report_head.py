"""The head of the report: on what machine, with what versions, when and by what command."""

from __future__ import annotations

import sys

from report_data import Results, Run
from report_text import number, table

# What pytest-benchmark itself writes into machine_info; used where nothing else tells it.
OWN = {
    "node", "processor", "machine", "python_compiler", "python_implementation", "python_build",
    "python_implementation_version", "python_version", "release", "system", "cpu",
}  # fmt: skip


def head(results: Results) -> str:
    """Return a table of the last run, and one of all runs if they are several."""
    if not results.runs:
        return "No run."
    last = results.runs[-1]
    parts = [table(["", "this run"], facts(last), left=2)]
    if len(results.runs) > 1:
        rows = [[r.path, when(r), commit(r), load(r), command(r)] for r in results.runs]
        header = ["merged from", "when", "commit", "load", "command"]
        parts += ["Of benchmarks in several files, the last counts.", table(header, rows, left=5)]
        if len({_machine_key(run) for run in results.runs}) > 1:
            parts.append("**These files come from different machines or versions.**")
            print("the files come from different machines or versions", file=sys.stderr)
    return "\n\n".join(parts)


def facts(run: Run) -> list[list[str]]:
    """Return name and text of all that is known of the machine and the run."""
    info = run.machine
    cpu = info.get("cpu") or {}
    told = {_words(key): value for key, value in info.items() if key not in OWN}
    lower = " ".join(told).lower()
    rows = []
    if "cpu" not in lower and cpu.get("brand_raw"):
        rows.append(["cpu", f"{cpu['brand_raw']}, {cpu.get('count', '?')} cores"])
    if "kernel" not in lower:
        rows.append(["kernel", f"{info.get('system', '')} {info.get('release', '')}"])
    if "python" not in lower:
        rows.append(["python", info.get("python_version", "not recorded")])
    skipped = {"command", "commit", "load before"}
    rows += [[key, _text(value)] for key, value in told.items() if key not in skipped]
    rows += [
        ["load before", load(run)],
        ["commit", commit(run)],
        ["when", when(run)],
        ["command", command(run)],
    ]
    return rows


def when(run: Run) -> str:
    return run.when[:16].replace("T", " ") or "not recorded"


def commit(run: Run) -> str:
    told = run.machine.get("commit")
    made = str(told or run.commit.get("id") or "not recorded")[:12]
    return made + (", with changes" if run.commit.get("dirty") and not told else "")


def load(run: Run) -> str:
    told = run.machine.get("load_before", run.machine.get("load before"))
    return "not recorded" if told is None else _text(told)


def command(run: Run) -> str:
    told = run.machine.get("command")
    return f"`{told}`" if told else "not recorded"


def _words(key: str) -> str:
    return key.replace("_", " ")


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{_words(str(key))} {_text(each)}" for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_text(each) for each in value)
    if isinstance(value, float):
        return number(value)
    return NOT_THERE if value is None else str(value)


NOT_THERE = "not there"


def _machine_key(run: Run) -> str:
    changing = {"load_before", "load before", "command", "commit", "cpu"}
    return repr(sorted((k, repr(v)) for k, v in run.machine.items() if k not in changing))
