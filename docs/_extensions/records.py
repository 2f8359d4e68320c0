"""The page of records, from the tables in the kernels: the repository keeps no list of them."""

import importlib
import pkgutil

import cobre_kernels
from cobre_kernels.machine.record import RECORDS

PAGE = "design/records"


def _kind_of(field):
    """Return a field's kind as the page says it."""
    if field.kind == "memory":
        return f"{field.size_bytes} bytes"
    if field.kind == "own_rows" and field.size_bytes:
        return f"{field.size_bytes // RECORDS[field.target].size_bytes} {field.target}"
    return f"{field.kind} {field.target}".strip()


def _described(record):
    """Return a record's section of the page."""
    lines = [f"## {record.name}", "", record.about, ""]
    lines += ["| offset | field | kind | meaning |", "|---|---|---|---|"]
    for name, field in record.fields.items():
        row = (record.offsets[name], f"`{name}`", _kind_of(field), field.meaning)
        lines.append(f"| {' | '.join(map(str, row))} |")
    return "\n".join([*lines, ""])


def _add_records(app, name, source):
    if name == PAGE:
        for module in pkgutil.walk_packages(cobre_kernels.__path__, "cobre_kernels."):
            importlib.import_module(module.name)
        source[0] += "\n".join(["", *(_described(RECORDS[name]) for name in sorted(RECORDS))])


def setup(app):
    """Add to the page when it is read, which is each time: Sphinx does not watch the kernels."""
    app.connect("source-read", _add_records)
    app.connect("env-get-outdated", lambda *_: [PAGE])
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
