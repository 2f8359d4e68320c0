"""The right results in plain NumPy: fold in rank order, allgatherv, and data that identify ranks.

MIN and MAX are written with ``numpy.where``: ``numpy.minimum`` does not promise which of two equal
operands (+0.0 and -0.0) it returns.
"""

import numpy as np

from cobre_comm import ReduceOp

SENTINEL = 0xA5
ZONE_BYTES = 64  # how many sentinels are before and behind every output
INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
FLOATS = ["f4", "f8"]
COMPLEX = ["c8", "c16"]
STRUCTURED = np.dtype([("stage", "i4"), ("cost", "f8"), ("coefficients", "f4", (3,))])
PLAIN = [*INTEGERS, *FLOATS, *COMPLEX, "?", STRUCTURED, "M8[D]", "m8[ns]", "S5", "U3"]
PYTHON_ONLY = ["f2", "g", "G", ">f8", ">i2", "V7"]  # dtypes that numba does not have on a CPU
OPS = list(ReduceOp)
ARITHMETIC = {ReduceOp.SUM: np.add, ReduceOp.PROD: np.multiply}  # a NaN's payload is not promised
LOGIC = {ReduceOp.LAND: np.logical_and, ReduceOp.LOR: np.logical_or}
ORDER = {ReduceOp.MIN: np.less_equal, ReduceOp.MAX: np.greater_equal}
BITWISE = {ReduceOp.BAND: np.bitwise_and, ReduceOp.BOR: np.bitwise_or}


def ops_of(dtype):
    """Return a dtype's operations: complex numbers have SUM alone, bools and floats lack two."""
    lacking = {"c": set(OPS) - {ReduceOp.SUM}, "b": ARITHMETIC, "f": BITWISE}
    return [op for op in OPS if op not in lacking.get(np.dtype(dtype).kind, ())]


def fold(op, contributions):
    """Fold arrays in rank order."""
    accumulator = contributions[0].copy()
    if op in LOGIC:
        return LOGIC[op].reduce(contributions).astype(accumulator.dtype)
    if op in BITWISE:
        return BITWISE[op].reduce(contributions)
    with np.errstate(all="ignore"):
        for x in contributions[1:]:
            if op in ARITHMETIC:
                accumulator = ARITHMETIC[op](accumulator, x)
                continue
            earlier_stays = ORDER[op](accumulator, x)
            is_nan = accumulator != accumulator
            accumulator = np.where(earlier_stays | is_nan, accumulator, x)
    return accumulator


def allgatherv(recv, sends, displs):
    """Return ``recv`` after an allgatherv; elements outside the blocks keep their bytes."""
    expected = recv.copy()
    flat = expected.reshape(-1)
    for send, displacement in zip(sends, displs, strict=True):
        flat[displacement : displacement + send.size] = send.reshape(-1)
    return expected


def _mixed(seed, rank, count):
    """Return ``count`` words, a function of seed, rank and index (splitmix64's finalizer)."""
    with np.errstate(over="ignore"):
        x = np.arange(count, dtype=np.uint64) + np.uint64(1)
        x = x * np.uint64(0x9E3779B97F4A7C15) + np.uint64((seed * 1009 + rank) * 2654435761)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def block(dtype, rank, shape, seed=0):
    """Return an array of any dtype; its bytes are a function of seed, rank and index."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    octets = _mixed(seed, rank, -(-count * dtype.itemsize // 8)).view(np.uint8)
    octets = octets[: count * dtype.itemsize].copy()
    if dtype == np.bool_:
        octets &= 1
    return octets.view(dtype).reshape(shape)


def numbers(dtype, rank, count, seed=0, special=True):
    """Return numbers of all magnitudes, of a dtype that ``allreduce`` takes.

    Sums of integers wrap, ranks have ties, and ``special`` adds NaN, infinities and the like. Zeros
    are among the numbers, so that LAND and LOR have both results.
    """
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return block(dtype, rank, count, seed)
    if dtype.kind in "iu":
        drawn = block(dtype, rank, count, seed)
        tie = _mixed(seed + 1, 0, count) % np.uint64(7) == 0
        limits = np.iinfo(dtype)
        drawn[_mixed(seed, rank, count) % np.uint64(11) == 0] = limits.max
        drawn[_mixed(seed, rank, count) % np.uint64(11) == 1] = limits.min
        drawn[tie] = 42
        drawn[_mixed(seed + 2, rank % 2, count) % np.uint64(5) == 0] = 0
        return drawn
    if dtype.kind == "c":
        parts = numbers(np.dtype(f"f{dtype.itemsize // 2}"), rank, 2 * count, seed, special)
        return parts.view(dtype)
    word = _mixed(seed, rank, count)
    mantissa = (word >> np.uint64(11)).astype(np.float64) / 2.0**53 + 0.5
    exponent = (word % np.uint64(41)).astype(np.int64) - 20
    sign = np.where(word & np.uint64(1 << 10), -1.0, 1.0)
    drawn = (sign * np.ldexp(mantissa, exponent)).astype(dtype)
    if special:
        chosen = _mixed(seed + 2, rank, count) % np.uint64(64)
        chosen[:1] = 63  # the first is not special, so that a wrong sum of one element shows
        info = np.finfo(dtype)
        values = [np.nan, np.inf, -np.inf, 0.0, -0.0, info.smallest_subnormal]
        values += [-info.smallest_subnormal, info.tiny, info.max, -info.max, 1.5, 0.0, -0.0]
        for number, value in enumerate(values):
            drawn[chosen == number] = value
    return drawn


def sentinels(dtype, shape):
    """Return an array of SENTINEL bytes, with more such bytes before and behind it."""
    dtype = np.dtype(dtype)
    size_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    octets = np.full(size_bytes + 2 * ZONE_BYTES, SENTINEL, dtype=np.uint8)
    return octets[ZONE_BYTES : ZONE_BYTES + size_bytes].view(dtype).reshape(shape)


def among_sentinels(values):
    """Return a copy of an array with sentinels around it."""
    copy = sentinels(values.dtype, values.shape)
    copy.reshape(-1).view(np.uint8)[:] = np.frombuffer(values.tobytes(), dtype=np.uint8)
    return copy


def _assert_nothing_written_around(array):
    octets = array.base
    if not isinstance(octets, np.ndarray) or octets.nbytes != array.nbytes + 2 * ZONE_BYTES:
        return  # not an array of sentinels()
    before, behind = octets[:ZONE_BYTES], octets[ZONE_BYTES + array.nbytes :]
    assert (before == SENTINEL).all(), "bytes before the output were written"
    assert (behind == SENTINEL).all(), "bytes behind the output were written"


def assert_same_bytes(actual, expected):
    """Compare two arrays byte for byte; nothing may have been written around the first array."""
    _assert_nothing_written_around(actual)
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    assert actual.dtype == expected.dtype, (actual.dtype, expected.dtype)
    a, b = (np.frombuffer(x.tobytes(), dtype=np.uint8) for x in (actual, expected))
    if not np.array_equal(a, b):
        at = int(np.flatnonzero(a != b)[0])
        element = at // actual.dtype.itemsize
        raise AssertionError(
            f"{np.count_nonzero(a != b)} of {a.size} bytes differ, first in element {element}: "
            f"{actual.reshape(-1)[element].tobytes().hex()} instead of "
            f"{expected.reshape(-1)[element].tobytes().hex()}"
        )


def assert_same_fold(actual, expected, op):
    """Compare two results bit for bit, except for the payload of a NaN that SUM or PROD makes."""
    _assert_nothing_written_around(actual)
    if op in ARITHMETIC and actual.dtype.kind in "fc":
        real = actual.dtype if actual.dtype.kind == "f" else np.dtype(f"f{actual.itemsize // 2}")
        actual, expected = actual.reshape(-1).view(real), expected.reshape(-1).view(real)
        both = np.isnan(actual) & np.isnan(expected)
        actual, expected = (np.where(both, np.dtype(real).type(0), x) for x in (actual, expected))
    assert_same_bytes(actual, expected)
