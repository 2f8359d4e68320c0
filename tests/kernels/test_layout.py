"""The tables of words: nothing overlaps, what is contended lies apart, codes are stable."""

import inspect
import itertools
import re

import numpy as np
import pytest
from cobre_kernels import dtypes, kind, layout, status

from cobre_comm import ReduceOp

HEADER = ["PUBLISHED", "VERSION", "SIZE", "BUFFER_BYTES", "OWNER_PID", "READY"]
CELL = ["ARRIVED", "KIND", "LENGTH", "DETAIL", "PAYLOAD"]
STATE_BYTES = {  # of fields longer than a word
    "SCRATCH": 32,
    "PENDING_EXCEPTION": 24,
    "KERNELS": 32,
    "SHARED_KERNELS": 24,
}


def state_fields():
    """Read the names of the private state out of the source, so that a new one is checked too."""
    source = inspect.getsource(layout)
    section = source.split("# Private state of one communicator")[1].split("RANK_RECORDS")[0]
    return re.findall(r"^([A-Z_]+) = \d+", section, flags=re.MULTILINE)


def spans(names, lengths=None):
    return sorted(
        (getattr(layout, name), getattr(layout, name) + (lengths or {}).get(name, 8), name)
        for name in names
    )


def assert_apart(intervals, end):
    for (_, stop, name), (start, _, following) in itertools.pairwise(intervals):
        assert stop <= start, f"{name} reaches into {following}"
    assert intervals[-1][1] <= end
    assert all(start % layout.WORD_BYTES == 0 for start, _, _ in intervals)


def test_state():
    fields = state_fields()
    assert {"GUARD", "RANK", "GENERATION", "FAILURE", "BACKEND"} <= set(fields)
    assert_apart(spans(fields, STATE_BYTES), layout.RANK_RECORDS)
    assert layout.KERNELS + STATE_BYTES["KERNELS"] == layout.ALLGATHERV_KERNEL + 8


def test_rank_records():
    names = ["REASON", "RECORD_KIND", "RECORD_LENGTH", "RECORD_DETAIL"]
    assert_apart(spans(names), layout.RECORD_BYTES)
    for size in (1, 2, 7, 4096):
        end = layout.RANK_RECORDS + size * layout.RECORD_BYTES
        assert layout.state_words(size) * layout.WORD_BYTES >= end


def test_header():
    assert_apart(spans(HEADER), layout.HEADER_BYTES)
    assert layout.READY // layout.LINE_BYTES != layout.PUBLISHED // layout.LINE_BYTES


def test_rank_block():
    cells = {"CELLS": 2 * layout.CELL_BYTES}
    assert_apart(spans(["PID", "CONDITION", "SLEEPERS", "CELLS"], cells), layout.RANK_BYTES)
    lines = [offset // layout.LINE_BYTES for offset in (layout.PID, layout.SLEEPERS, layout.CELLS)]
    assert len(set(lines)) == 3, "words that different ranks write share a line"


def test_cell():
    assert_apart(spans(CELL, {"PAYLOAD": layout.INLINE_BYTES}), layout.CELL_BYTES)
    assert layout.INLINE_BYTES % 16 == 0
    assert layout.PAYLOAD % 16 == 0


def test_everything_is_aligned():
    assert layout.LINE_BYTES >= 128
    for length in (layout.HEADER_BYTES, layout.RANK_BYTES, layout.CELL_BYTES, layout.CELLS):
        assert length % layout.LINE_BYTES == 0


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 64, 4096])
def test_buffers_follow_the_rank_blocks(size):
    offset = layout.buffers_offset(size)
    assert offset % layout.PAGE_BYTES == 0
    assert offset >= layout.HEADER_BYTES + size * layout.RANK_BYTES


@pytest.mark.parametrize("size", [4, 5, 7, 16, 100, 4096])
@pytest.mark.parametrize("buffer_bytes", [4096, 8192, 12288, 48 * 1024, 2**20])
def test_slots_and_stripes_fit_their_buffer(buffer_bytes, size):
    chunk = layout.chunk_bytes(buffer_bytes)
    assert chunk % layout.LINE_BYTES == 0
    assert 2 * chunk + 2 * (chunk // 2) <= buffer_bytes
    lines = chunk // layout.LINE_BYTES
    largest_stripe = -(-lines // size) * layout.LINE_BYTES
    assert largest_stripe <= chunk // 2


def codes_of(module):
    return {
        name: value
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, int) and not name.endswith("_MASK")
    }


def test_statuses_are_distinct():
    codes = codes_of(status)
    codes.pop("FIRST_BREAKING")
    assert len(set(codes.values())) == len(codes)
    assert codes["OK"] == 0
    breaking = {"LOST_PEER", "TIMED_OUT", "DISAGREE", "INTERRUPTED", "MPI_FAILED"}
    assert {name for name, code in codes.items() if code >= status.FIRST_BREAKING} == breaking


def test_operations_are_distinct_and_named():
    codes = codes_of(kind)
    assert codes.pop("EXACT") == dtypes.EXACT  # no operation
    assert len(set(codes.values())) == len(codes) == len(kind.OPERATIONS)
    assert set(codes.values()) == set(kind.OPERATIONS)


def test_dtype_codes_are_distinct_and_named():
    codes = codes_of(dtypes)
    assert len(set(codes.values())) == len(codes)
    assert set(dtypes.NAMES) == set(codes.values())
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
    assert {np.dtype(c) for c in reducible} == {np.dtype(c) for c in "bhilBHILfdFD"}


@pytest.mark.parametrize("operation", list(kind.OPERATIONS))
@pytest.mark.parametrize("dtype", [0, 1, 16, dtypes.OTHER | 0x7FFFFFFF << 8])
@pytest.mark.parametrize("argument", [0, 2, 4095, 65535])
def test_kinds_pack_and_unpack(operation, dtype, argument):
    packed = kind.pack_kind(operation, dtype, argument)
    assert 0 < packed < 2**63
    assert kind.unpack_kind(packed) == (kind.OPERATIONS[operation], dtype & 0xFF, argument)


def test_reduce_op_fits_the_packed_kind():
    assert [int(op) for op in ReduceOp] == [0, 1, 2]
