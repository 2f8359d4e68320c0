"""The atomic operations in the sources, their comments, and the table in docs/design."""

import ast
import pathlib
import re
from typing import NamedTuple

import cobre_kernels

KERNELS = pathlib.Path(cobre_kernels.__file__).parent
TABLE = pathlib.Path(__file__).parents[2] / "docs" / "design" / "memory-orderings.md"
LOADS = {"load_relaxed", "load_acquire", "load_seq_cst"}
RELEASES = {"store_release", "store_seq_cst", "fetch_add", "compare_exchange"}
OPERATIONS = LOADS | RELEASES | {"store_relaxed"}


class Operation(NamedTuple):
    """An atomic operation: its place, as ``shm/step.publish``, and its name."""

    place: str
    name: str


class Call(NamedTuple):
    """A call of an atomic operation, with the comment above and the docstring of its function."""

    operation: Operation
    comment: str


class Row(NamedTuple):
    """A row of the table: the words, and the operations that write or read these words."""

    words: set[str]
    writes: set[Operation]
    reads: set[Operation]


def functions(path):
    """Return the functions of a file."""
    tree = ast.parse(path.read_text())
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def name_of(path):
    """Return the name by which the table calls a file of the kernels, such as ``shm/step``."""
    return str(path.relative_to(KERNELS).with_suffix(""))


def sources():
    """Return the files of the kernels, without atomics.py, which defines the operations."""
    return [p for p in sorted(KERNELS.rglob("*.py")) if p.name != "atomics.py"]


def calls_in(function, names):
    """Return the calls within a function that call one of these names, also as an attribute."""
    return [
        node for node in ast.walk(function) if isinstance(node, ast.Call) and called(node) in names
    ]


def called(call):
    """Return the name of the function that a call calls."""
    return getattr(call.func, "id", getattr(call.func, "attr", None))


def names_in(path):
    """Return the names and attributes that a file mentions, such as ``comm.control``."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return {ast.unparse(node) for node in nodes if isinstance(node, ast.Name | ast.Attribute)}


def comment_above(lines, line):
    """Return the comment that ends right above a line, numbered from 1."""
    begin = line - 1
    while begin > 0 and lines[begin - 1].strip().startswith("#"):
        begin -= 1
    return " ".join(text.strip().lstrip("# ") for text in lines[begin : line - 1])


def atomic_calls():
    """Return every call of an atomic operation in the kernels."""
    found = []
    for path in sources():
        lines = path.read_text().splitlines()
        for function in functions(path):
            about = ast.get_docstring(function) or ""
            for call in calls_in(function, OPERATIONS):
                place = f"{name_of(path)}.{function.name}"
                comment = f"{comment_above(lines, call.lineno)} {about}"
                found.append(Call(Operation(place, called(call)), comment))
    return found


def documented():
    """Return the rows of the table."""
    rows = []
    for line in TABLE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 5 and "`" in cells[2]:
            words = set(cells[0].split(", "))
            rows.append(Row(words, _operations(cells[2]), _operations(cells[3])))
    return rows


def _operations(cell):
    return {Operation(*entry) for entry in re.findall(r"`([\w/]+\.\w+): (\w+)`", cell)}


def partners(rows, operation):
    """Return the names of the functions that may be the partner of an operation."""
    others = set()
    for row in rows:
        if operation in row.writes:
            others |= {place.rpartition(".")[2] for place, _ in row.reads | row.writes}
    return others - {operation.place.rpartition(".")[2]}
