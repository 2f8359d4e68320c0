"""Every record of the kernels, and the page that describes them.

    python -m tests.kernels.records

writes docs/design/records.md from the tables.
"""

import importlib
import pathlib

import cobre_kernels
from cobre_kernels.machine.record import LINE_BYTES, RECORDS, Field

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "design" / "records.md"
FOLDER = pathlib.Path(cobre_kernels.__file__).parent
INTRODUCTION = f"""# Records

**Problem.** Kernels keep private state and share words with other ranks. Each word needs one place,
one writer and one meaning, in compiled code, in Python and in the documents.

**Choice.** A record is a table of named words, declared once in the kernels; `machine/record.py`
turns it into offsets. They follow from the order of the fields, so fields cannot overlap. A field
that begins a line begins at a multiple of {LINE_BYTES} bytes: ranks that write different lines do
not take cache lines from each other. `python -m tests.kernels.records` writes this page.

| kind | what the field is |
|---|---|
| word | 64 bits that one process touches |
| shared | 64 bits that other processes or threads touch, through `machine/atomics.py` alone |
| N bytes | memory inside the record |
| part, N records | records inside the record |
| own_rows | the last field: records inside the record, as many as its maker wants |
| pointer, rows, table | the address of a record, of records and of words that follow each other |
"""


def declare_all():
    """Import every file of the kernels that declares a record."""
    for path in sorted(FOLDER.rglob("*.py")):
        if " = Record(" in path.read_text():
            parts = path.relative_to(FOLDER.parent).with_suffix("").parts
            importlib.import_module(".".join(parts))


def kind_of(field: Field):
    """Return a field's kind as the page says it."""
    if field.kind == "memory":
        return f"{field.size_bytes} bytes"
    if field.kind == "own_rows" and field.size_bytes:
        return f"{field.size_bytes // RECORDS[field.target].size_bytes} {field.target}"
    return f"{field.kind} {field.target}".strip()


def described(record):
    """Return a record's section of the page."""
    lines = [f"## {record.name}", "", record.about, ""]
    lines += ["| offset | field | kind | meaning |", "|---|---|---|---|"]
    for name, field in record.fields.items():
        row = (record.offsets[name], f"`{name}`", kind_of(field), field.meaning)
        lines.append(f"| {' | '.join(map(str, row))} |")
    return "\n".join([*lines, ""])


def page():
    """Return the whole page."""
    return "\n".join([INTRODUCTION, *(described(RECORDS[name]) for name in sorted(RECORDS))])


declare_all()

if __name__ == "__main__":
    PAGE.write_text(page())
