"""From names to numbers: which block of Philox belongs to a number, and what its bits become.

A key of ours has two words, low and high. Number i of the key is made of one block of Philox: the
counter of the block is i and high, 64 bits each, and the key of Philox is low. Each distribution
changes low by a constant of its own, so that no two distributions use the same blocks.
"""

from typing import NamedTuple

import numpy as np

from cobre_kernels.machine.atomics import poke
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.elements import element_access
from cobre_kernels.machine.float_mode import float_mode, in_float_mode
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.record import WORD_BYTES, Record, table_at, word
from cobre_kernels.random.philox import (
    LOW_32,
    begin_fold,
    encrypt,
    end_fold,
    fold_name,
    high_half,
)
from cobre_kernels.random.quantile import quantile

LARGEST = 2**63 - 1
NORMAL = 0x243F6A8885A308D3  # the first 64 bits of the fraction of pi; INTEGERS has the next 64
INTEGERS = 0x13198A2E03707344


@routine
def block_of(low, high, i):
    """Return the four words of the block for number i."""
    return encrypt(
        i & LOW_32, high_half(i), high & LOW_32, high_half(high), low & LOW_32, high_half(low)
    )


@routine
def draw_uniform(low, high, i):
    """Return a multiple of 2**-53 in [0, 1)."""
    a, b, _, _ = block_of(low, high, i)
    return float(b << 21 | a >> 11) * 2.0**-53


@routine
def draw_normal(low, high, i):
    """Return the normal quantile of an odd multiple of 2**-53; there are 2**52 of these in (0, 1).

    The result would depend on the rounding mode of the thread, so mode 0 is set meanwhile. No
    number in the computation is subnormal.
    """
    a, b, _, _ = block_of(low ^ NORMAL, high, i)
    p = float(b << 21 | (a >> 11) | 1) * 2.0**-53
    mode = float_mode()
    if mode != 0:
        p = in_float_mode(p, 0)
    x = quantile(p)
    if mode != 0:
        x = in_float_mode(x, mode)
    return x


@routine
def draw_integer(low, high, i, bound):
    """Return an integer in [0, bound); bound is at least 1.

    D. Lemire, "Fast random integer generation in an interval", ACM Transactions on Modeling and
    Computer Simulation 29 (2019), doi:10.1145/3230636: the result is the upper half of the product
    of 64 random bits and bound. If the lower half is below 2**64 mod bound, the block is encrypted
    again.
    """
    low ^= INTEGERS
    a, b, c, d = block_of(low, high, i)
    upper, lower = _multiply(b, a, bound)
    if 0 <= lower < bound:  # signed: a word below 0 stands for 2**63 or more
        once = (LARGEST % bound + 1) % bound  # 2**63 mod bound
        threshold = once - (bound - once) if once >= bound - once else once + once
        while 0 <= lower < threshold:
            a, b, c, d = encrypt(a, b, c, d, low & LOW_32, high_half(low))
            upper, lower = _multiply(b, a, bound)
    return upper


@routine
def _multiply(high, low, bound):
    """Return both halves of the product of (high, low), two words of 32 bits, and an int64 > 0."""
    bound_high, bound_low = high_half(bound), bound & LOW_32
    first = low * bound_low
    second = high * bound_low + high_half(first)
    third = low * bound_high + (second & LOW_32)
    upper = high * bound_high + high_half(second) + high_half(third)
    return upper, (third & LOW_32) << 32 | first & LOW_32


NUMBERS = Record(
    "Numbers",
    "Numbers that are drawn for Python, in an array of the caller.",
    first=word("the first number, a float64 or an int64; the other numbers follow"),
)

_store_float64 = element_access(np.float64)[1]


class Names(NamedTuple):
    """An array of int64, which are folded into the two words of a key."""

    names: int
    count: int


class Draw(NamedTuple):
    """A key, an array of int64 with the indices of the wanted numbers, and a bound for integers."""

    low: int
    high: int
    indices: int
    count: int
    bound: int


@kernel(NUMBERS, Names)
def key_kernel(key, call):
    """Fold names into a key, like :func:`~.philox.fold_names`."""
    names, state = table_at(call.names), begin_fold(call.count)
    for n in range(call.count):
        state = fold_name(state, names[n])
    low, high = end_fold(state)
    poke(key.address, low)
    poke(key.address + WORD_BYTES, high)
    return 0


@kernel(NUMBERS, Draw)
def uniform_kernel(drawn, call):
    """Draw a number for each index."""
    indices = table_at(call.indices)
    for n in range(call.count):
        _store_float64(drawn.address, n, draw_uniform(call.low, call.high, indices[n]))
    return 0


@kernel(NUMBERS, Draw)
def normal_kernel(drawn, call):
    """Draw a number for each index."""
    indices = table_at(call.indices)
    for n in range(call.count):
        _store_float64(drawn.address, n, draw_normal(call.low, call.high, indices[n]))
    return 0


@kernel(NUMBERS, Draw)
def integers_kernel(drawn, call):
    """Draw a number for each index."""
    indices, numbers = table_at(call.indices), table_at(drawn.address)
    for n in range(call.count):
        numbers[n] = draw_integer(call.low, call.high, indices[n], call.bound)
    return 0
