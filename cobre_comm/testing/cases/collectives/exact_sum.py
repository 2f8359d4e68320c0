"""exact_sum: the correctly rounded sum, however the values are split over the ranks."""

import functools
import math

import numpy as np

from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import EVERY, NEVER, QUICK, Case, Slow
from cobre_comm.testing.cases.reference import block, numbers

LARGEST = np.finfo(np.float64).max
TINY = np.finfo(np.float64).smallest_subnormal


def words(seed, count):
    """Return ``count`` random 64-bit words, a function of seed and index."""
    return block("u8", 0, count, seed)


def finite(seed, count):
    """Return finite float64 of random sign, mantissa and exponent, subnormals included."""
    drawn = words(seed, count)
    exponents = drawn >> np.uint64(52) & np.uint64(0x7FF)
    drawn[exponents == 0x7FF] ^= np.uint64(1 << 60)
    # Clear the top bit of large exponents: any partial sum of a million stays finite for math.fsum.
    drawn[exponents > 0x7E0] ^= np.uint64(1 << 62)
    return drawn.view(np.float64)


def cancelling(seed, count):
    """Return values that cancel each other, except for the last value, a subnormal number."""
    half = finite(seed, count // 2)
    order = np.argsort(words(seed + 1, 2 * half.size))
    return np.append(np.concatenate([half, -half])[order], 3 * TINY)


def ties(seed, count):
    """Return values whose sum lies half-way between two float64, or just beside it."""
    few = words(seed, 3).astype(np.int64) & 1
    return np.array([2.0**53, 1.0 * few[0], (-1.0) ** few[1] * 2.0**-1000 * few[2], *[0.0] * count])


def near_overflow(seed, count):
    """Return the largest numbers of both signs; their partial sums may exceed float64."""
    signs = np.where(words(seed, count) & np.uint64(1), 1.0, -1.0)
    drawn = signs * LARGEST
    drawn[: count // 3] /= 1.0 + (words(seed + 1, count // 3) % np.uint64(5)).astype(np.float64)
    return drawn


KINDS = {
    "wild": finite,
    "similar": lambda seed, count: numbers("f8", 0, count, seed, special=False),
    "subnormal": lambda seed, count: (words(seed, count) >> np.uint64(12)).view(np.float64),
    "smallest": lambda seed, count: (words(seed, count) % np.uint64(7)).view(np.float64),
    "cancelling": cancelling,
    "ties": ties,
    "near overflow": near_overflow,
    "zeros": lambda seed, count: np.where(words(seed, count) & np.uint64(1), 0.0, -0.0),
    "specials": lambda seed, count: numbers("f8", 0, count, seed),
    "infinite": lambda seed, count: np.append(finite(seed, count), [np.inf, LARGEST, np.inf]),
    "minus infinite": lambda seed, count: np.append(finite(seed, count), -np.inf),
    "both infinities": lambda seed, count: np.append(finite(seed, count), [np.inf, -np.inf]),
    "not a number": lambda seed, count: np.append(finite(seed, count), [np.inf, np.nan]),
    "nothing": lambda seed, count: np.zeros(0),
}


@functools.lru_cache(maxsize=4)
def everything(kind, seed, count):
    """Return the values of all ranks."""
    with np.errstate(all="ignore"):
        return KINDS[kind](seed, count)


def expected(values):
    """Return the correctly rounded sum, computed with integers: the values in units of 2**-1074."""
    values = values.astype(np.float64)
    special = values[~np.isfinite(values)]
    if special.size:
        return float(special.sum()) if not np.isnan(special).any() else math.nan
    ratios = map(float.as_integer_ratio, values.tolist())
    total = sum(number << 1075 - of.bit_length() for number, of in ratios)
    try:
        return total / 2**1074  # int / int is correctly rounded
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def same(one, other):
    """Whether two floats have the same bits; all NaNs count as the same."""
    return one.hex() == other.hex()


def owners(count, size, seed):
    """Return the rank that holds each value; some ranks may hold none."""
    if seed % 4 == 0:  # one rank holds all values
        return np.full(count, seed // 4 % size)
    if seed % 4 == 1:  # blocks; the last ranks may hold none
        return np.minimum(np.arange(count) // max(1, count // max(1, size - 1)), size - 1)
    return (words(seed + 77, count) % np.uint64(size)).astype(np.int64)


def sum_split(comm, caller, kind, count, seed, dtype="f8"):
    """Sum values that are split over the ranks as the seed says; return the bits of the sum."""
    with np.errstate(all="ignore"):
        values = everything(kind, seed, count).astype(dtype)
    mine = values[owners(values.size, comm.size, seed) == comm.rank]
    result = calls(caller, comm.rank).exact_sum(comm, mine)
    assert type(result) is float
    return result.hex()


def sum_kinds(comm, caller, count, seeds, dtype="f8"):
    """Sum every kind of values in several splits; compare each with the sum by integers."""
    for kind in KINDS:
        for seed in seeds:
            result = float.fromhex(sum_split(comm, caller, kind, count, seed, dtype))
            with np.errstate(all="ignore"):
                right = expected(everything(kind, seed, count).astype(dtype))
            assert same(result, right), (kind, seed, result.hex(), right.hex())


def sum_many(comm, caller, count, dtype):
    """Sum values that ``math.fsum`` can sum too; one rank holds them all, or each holds some."""
    for kind in ("similar", "zeros", *(("subnormal", "cancelling") if dtype == "f8" else ())):
        for seed in (0, 2):
            right = math.fsum(everything(kind, seed, count).astype(dtype)).hex()
            assert sum_split(comm, caller, kind, count, seed, dtype) == right, (kind, seed)


def sum_shapes(comm, caller):
    """Sum arrays of two dimensions and of none, strided and read-only arrays, and two dtypes."""
    exact_sum = calls(caller, comm.rank).exact_sum
    assert exact_sum(comm, np.full((3, 4), 0.5)) == 6.0 * comm.size
    assert exact_sum(comm, np.array(2.0 + comm.rank)) == sum(2.0 + r for r in range(comm.size))
    line = np.arange(10.0) + comm.rank
    line.flags.writeable = False
    assert exact_sum(comm, line[3:5]) == sum(7.0 + 2 * r for r in range(comm.size))
    mine = np.full(3, 0.1, np.float32 if comm.rank % 2 else np.float64)
    everyone = [np.full(3, 0.1, np.float32 if r % 2 else np.float64) for r in range(comm.size)]
    right = expected(np.concatenate([x.astype(np.float64) for x in everyone]))
    assert exact_sum(comm, mine) == right


def is_fsum(ran):
    """Every rank holds the sum that ``math.fsum`` makes of all values."""
    kind, count, seed, dtype = ran.cell.arguments
    right = math.fsum(everything(kind, seed, count).astype(dtype)).hex()
    wrong = {rank: value for rank, value in enumerate(ran.values) if value != right}
    assert not wrong, f"should be {right}; ranks have {wrong}"


CASES = [
    Case(
        "a_million_values_of_all_magnitudes", sum_split,
        {"kind": ["wild"], "count": [1_000_000], "seed": [5, 6, Slow(8)], "dtype": ["f8"]},
        expect=is_fsum, check=NEVER,
    ),
    Case(
        "a_million_values_over_four_ranks", sum_split,
        {"kind": ["wild"], "count": [1_000_000], "seed": [Slow(9), Slow(10)], "dtype": ["f8"]},
        sizes=(4,), expect=is_fsum, check=NEVER,
    ),
    Case(
        "every_kind_in_every_split", sum_kinds,
        {"count": [200], "seeds": [range(4)], "dtype": ["f8", "f4"]}, callers=EVERY, check=QUICK,
    ),
    Case(
        "few_and_many", sum_many, {"count": [8191, 8192, 30_001], "dtype": ["f8", "f4"]},
    ),
    Case("shapes_and_dtypes", sum_shapes),
]  # fmt: skip
