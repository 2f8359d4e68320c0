"""Records: memory as named words.

A record is declared once, as a table of fields with their meanings. Kernels read ``comm.size`` and
write ``comm.count = 7`` through an address (``compiling/record_types.py`` explains this to numba).
Python does the same through a :class:`View`. The site lists all records, from the same tables.

The value of an attribute depends on the kind of its field:

=============  ==========================================================================
``word``       the value; assigned to like any attribute
``shared``     the address of the word, for the functions of ``atomics.py`` and no others
``memory``     the address of so many bytes inside the record
``part``       another record, inside this one
``pointer``    another record, at the address that the word holds
``rows``       records one after the other, at the address that the word holds; ``rows[i]``
``own_rows``   the same inside this record; without a number, as many as its maker wants
``table``      words one after the other, at the address that the word holds; ``table[i]``
=============  ==========================================================================

``record.address`` is where the record itself begins.
"""

import ctypes
from dataclasses import dataclass

import numpy as np

from cobre_kernels.machine.compiled import instruction

WORD_BYTES = 8
LINE_BYTES = 128  # two cache lines, because the hardware prefetches adjacent lines in pairs

RECORDS = {}  # by name, so that a pointer can name a record that is declared later


@dataclass(frozen=True)
class Field:
    """One row of a record's table: kind, meaning, bytes, and the record inside or pointed to."""

    kind: str
    meaning: str
    size_bytes: int = WORD_BYTES
    target: str = ""
    begins_line: bool = False


def word(meaning):
    """Declare a word that only this process accesses."""
    return Field("word", meaning)


def shared(meaning, *, begins_line=False):
    """Declare a word that other processes or threads access, maybe at the start of a cache line."""
    return Field("shared", meaning, begins_line=begins_line)


def memory(size_bytes, meaning, *, begins_line=False):
    """Declare bytes inside the record."""
    return Field("memory", meaning, size_bytes, begins_line=begins_line)


def part(record, meaning):
    """Declare another record inside this one."""
    return Field("part", meaning, record.size_bytes, record.name)


def pointer(target, meaning):
    """Declare a word that holds the address of a record, given by its name."""
    return Field("pointer", meaning, target=target)


def rows(target, meaning):
    """Declare a word that holds the address of records that follow each other."""
    return Field("rows", meaning, target=target)


def own_rows(record, meaning, count=0, *, begins_line=False):
    """Declare records inside this one; with count 0, as many as its maker wants, at the end."""
    return Field("own_rows", meaning, count * record.size_bytes, record.name, begins_line)


def table(meaning):
    """Declare a word that holds the address of words that follow each other."""
    return Field("table", meaning)


class Record:
    """The table of a record: names, offsets and meanings.

    Parameters
    ----------
    name : str
        The name of the record, unique.
    about : str
        The meaning of the record, and the rank that writes it; one or two sentences.
    line_bytes : int
        The length of the record is a multiple of this number.
    **fields : Field
        The fields, in the order in which they lie in memory.
    """

    def __init__(self, name, about, /, *, line_bytes=WORD_BYTES, **fields):
        assert name not in RECORDS, name
        assert "address" not in fields, name
        self.name, self.about, self.fields = name, about, fields
        self.offsets = {}
        end = 0
        for field_name, field in fields.items():
            unit = LINE_BYTES if field.begins_line else WORD_BYTES
            self.offsets[field_name] = -(-end // unit) * unit
            end = self.offsets[field_name] + field.size_bytes
        self.size_bytes = -(-end // line_bytes) * line_bytes
        RECORDS[name] = self

    def array(self, rows=0):
        """Return zeroed int64 words for one record, with room for ``rows`` own rows at its end."""
        *_, (last, field) = self.fields.items()
        size_bytes = self.size_bytes
        if field.kind == "own_rows" and field.size_bytes == 0:
            size_bytes = self.offsets[last] + rows * RECORDS[field.target].size_bytes
        return np.zeros(size_bytes // WORD_BYTES, dtype=np.int64)

    def at(self, address):
        """Return Python's view of the record at an address."""
        return View(self, address)

    def of(self, array):
        """Return Python's view of the record in an array of words, which must stay alive."""
        return View(self, array.ctypes.data)


def peek_now(address):
    """Load a word from Python, without compiling anything."""
    return ctypes.c_int64.from_address(address).value


def poke_now(address, value):
    """Store a word from Python, without compiling anything."""
    ctypes.c_int64.from_address(address).value = value


class View:
    """A record as Python sees it; if nothing is compiled, kernels use views too."""

    __slots__ = ("_record", "address")

    def __init__(self, record, address):
        object.__setattr__(self, "_record", record)
        object.__setattr__(self, "address", address)

    def __getattr__(self, name):
        field = self._record.fields.get(name)
        if field is None:
            raise AttributeError(f"record {self._record.name} has no field {name!r}")
        at = self.address + self._record.offsets[name]
        if field.kind in ("shared", "memory"):
            return at
        if field.kind in ("part", "own_rows"):
            return _seen(field, at)
        return _seen(field, peek_now(at))

    def __setattr__(self, name, value):
        field = self._record.fields[name]
        assert field.kind not in ("shared", "memory", "part", "own_rows"), name
        poke_now(self.address + self._record.offsets[name], int(value))

    def __int__(self):
        return self.address

    __index__ = __int__


class Rows:
    """Records that follow each other, as Python sees them."""

    def __init__(self, record, address):
        self._record, self.address = record, address

    def __getitem__(self, index):
        return View(self._record, self.address + index * self._record.size_bytes)


class Table:
    """Words that follow each other, as Python sees them."""

    def __init__(self, address):
        self.address = address

    def __getitem__(self, index):
        return peek_now(self.address + WORD_BYTES * index)

    def __setitem__(self, index, value):
        poke_now(self.address + WORD_BYTES * index, int(value))


@instruction
def table_at(address):
    """Return the words at an address as a table."""
    return Table(address)


def record_at(record):
    """Return a function that turns an address into a record, in compiled code too."""

    def record_at(address):
        return View(record, address)

    return instruction(record_at, record)


def _seen(field, value):
    """Return Python's view of a field, from its value or its address."""
    if field.kind == "word":
        return value
    if field.kind == "table":
        return Table(value)
    wrap = Rows if field.kind in ("rows", "own_rows") else View
    return wrap(RECORDS[field.target], value)
