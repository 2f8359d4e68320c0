"""Records: contended words are apart, every field has a meaning, and codes are distinct."""

import importlib
import pkgutil
import time

import cobre_kernels
import numpy as np
import pytest
from cobre_kernels.collective import calls, comm, dtypes, status
from cobre_kernels.collective.comm import COMM, FAILURE
from cobre_kernels.collective.reduction import fold
from cobre_kernels.collective.seeing import journal
from cobre_kernels.collective.seeing.journal import (
    JOURNAL,
    NOTED_CALL,
    OPERATION,
    PHASE,
    RAISED,
)
from cobre_kernels.machine.record import LINE_BYTES, RECORDS, WORD_BYTES
from cobre_kernels.nodes.arrival import RANK_BITS
from cobre_kernels.shm import control
from cobre_kernels.shm.control import CELL, CONTROL, RANK_BLOCK

from cobre_comm import ReduceOp
from cobre_comm.config import MAX_RANKS

for module in pkgutil.walk_packages(cobre_kernels.__path__, "cobre_kernels."):
    importlib.import_module(module.name)

every_record = pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)


@every_record
def test_fields_follow_each_other(record):
    ends = [record.offsets[n] + f.size_bytes for n, f in record.fields.items()]
    begins = [*list(record.offsets.values())[1:], record.size_bytes]
    assert all(end <= begin for end, begin in zip(ends, begins, strict=True))
    assert all(offset % WORD_BYTES == 0 for offset in record.offsets.values())


@every_record
def test_every_field_has_a_meaning_and_a_target(record):
    assert record.about.endswith(".")
    for name, field in record.fields.items():
        assert field.meaning, name
        assert field.target in RECORDS or not field.target, name
        needs_target = field.kind in ("part", "pointer", "rows", "own_rows")
        assert bool(field.target) == needs_target, name


@every_record
def test_rows_without_a_number_are_the_last_field(record):
    *before, _ = record.fields.values()
    assert all(field.size_bytes > 0 for field in before)


def lines_of(record, *names):
    return {record.offsets[name] // LINE_BYTES for name in names}


def test_words_that_different_ranks_write_are_lines_apart():
    assert LINE_BYTES >= 128
    for record in (CELL, RANK_BLOCK):
        assert record.size_bytes % LINE_BYTES == 0
    assert CONTROL.offsets["blocks"] % LINE_BYTES == 0
    assert RANK_BLOCK.offsets["cells"] % LINE_BYTES == 0
    assert len(lines_of(RANK_BLOCK, "pid", "sleepers", "cells")) == 3
    assert not lines_of(CONTROL, "published") & lines_of(CONTROL, "ready")


def test_payload_is_aligned_and_ends_with_its_cell():
    assert CELL.size_bytes == LINE_BYTES
    assert CELL.offsets["payload"] % 16 == 0
    assert CELL.offsets["payload"] + control.INLINE_BYTES == CELL.size_bytes


@pytest.mark.parametrize("size", [1, 2, 7, 4096])
def test_array_has_room_for_its_rows(size):
    assert COMM.array(size).nbytes == COMM.offsets["failures"] + size * FAILURE.size_bytes


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 64, 4096])
def test_buffers_follow_the_rank_blocks(size):
    offset = control.buffers_offset(size)
    assert offset % control.PAGE_BYTES == 0
    assert offset >= CONTROL.offsets["blocks"] + size * RANK_BLOCK.size_bytes


@pytest.mark.parametrize("size", [4, 5, 7, 16, 100, 4096])
@pytest.mark.parametrize("buffer_bytes", [4096, 8192, 12288, 48 * 1024, 2**20])
def test_slots_and_stripes_fit_their_buffer(buffer_bytes, size):
    chunk = control.chunk_bytes(buffer_bytes)
    assert chunk % LINE_BYTES == 0
    assert 2 * chunk + 2 * (chunk // 2) <= buffer_bytes
    largest_stripe = -(-(chunk // LINE_BYTES) // size) * LINE_BYTES
    assert largest_stripe <= chunk // 2


def test_a_moment_has_room_for_any_rank_and_for_the_clock():
    assert MAX_RANKS == 1 << RANK_BITS
    assert (time.time_ns() // 1000 << RANK_BITS) < 2**63


def test_torn_mark_cannot_be_taken_for_another():
    marks = [m.to_bytes(8, "little") for m in (control.MAGIC, control.UNFINISHED)]
    assert sum(a != b for a, b in zip(*marks, strict=True)) == 1


def test_a_new_layout_of_journals_has_a_new_mark():
    journals = [record.size_bytes for record in (JOURNAL, OPERATION, PHASE, NOTED_CALL, RAISED)]
    mark = journal.JOURNAL_MAGIC.to_bytes(8, "little")
    assert (mark, journals) == (b"CBREJRN4", [10752, 64, 128, 64, 256]), "raise JOURNAL_MAGIC"


# ------------------------------------------------------------------------------------------- codes


def numbered(module, first, last="", before=""):
    """Return the codes of a module from one name to another, in the order of its source."""
    names = [n for n, v in vars(module).items() if n.isupper() and isinstance(v, int)]
    end = names.index(last) + 1 if last else names.index(before)
    return {n: getattr(module, n) for n in names[names.index(first) : end]}


CODES = {
    "status": numbered(status, "OK", "MPI_FAILED"),
    "operation": numbered(calls, "BARRIER", before="HASH_MASK"),
    "dtype": numbered(dtypes, "OTHER", "EXACT"),
    "guard": numbered(comm, "FORKED", "FINALIZED"),
    "reason": numbered(comm, "PRESENT", "UNREACHABLE"),
    "condition": numbered(control, "MEMBER", "HAS_FAILED"),
}


@pytest.mark.parametrize("kind", CODES)
def test_codes_are_distinct(kind):
    codes = CODES[kind]
    assert len(set(codes.values())) == len(codes) >= 3


def test_statuses_from_first_breaking_on_break():
    breaking = {n for n, code in CODES["status"].items() if code >= status.FIRST_BREAKING}
    assert breaking == {"LOST_PEER", "TIMED_OUT", "DISAGREE", "INTERRUPTED", "MPI_FAILED"}
    assert status.OK == 0


def test_operations_and_dtypes_have_names():
    assert set(CODES["operation"].values()) == set(calls.OPERATIONS)
    assert set(CODES["dtype"].values()) == {dtypes.OTHER, *dtypes.NAMES}
    for dtype, code in dtypes.CODES.items():
        assert dtypes.NAMES[code] == dtype.name or code >= dtypes.LONGDOUBLE


def test_type_numbers_of_numpy():
    for character in "?bBhHiIlLqQfdgFDGe":
        dtype = np.dtype(character)
        assert dtypes.BY_TYPE_NUMBER[dtype.num] == dtypes.CODES[dtype], character
    for character in "OSUVMm":
        assert dtypes.BY_TYPE_NUMBER[np.dtype(character).num] == -1


def test_what_can_be_reduced():
    reducible = {dtype.char for dtype, code in dtypes.CODES.items() if dtypes.is_reducible(code)}
    assert {np.dtype(c) for c in reducible} == {np.dtype(c) for c in "?bhilBHILfdFD"}


@pytest.mark.parametrize("operation", calls.OPERATIONS)
@pytest.mark.parametrize("dtype", [0, 1, 16, dtypes.OTHER | calls.HASH_MASK << 8])
@pytest.mark.parametrize("argument", [0, 2, 4095, 65535])
def test_signatures_pack_and_unpack(operation, dtype, argument):
    packed = calls.signature_of.py_func(operation, dtype, argument)
    assert 0 < packed < calls.STOP
    name = calls.OPERATIONS[operation]
    assert calls.unpack_signature(packed) == (name, dtype & 0xFF, argument)


def test_operations_have_the_numbers_of_the_fold():
    assert [int(op) for op in ReduceOp] == [*range(len(ReduceOp))]
    assert {op.name: int(op) for op in ReduceOp} == {
        op.name: vars(fold)[op.name] for op in ReduceOp
    }
