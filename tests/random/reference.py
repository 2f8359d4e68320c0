"""The numbers of ``cobre_comm.random`` in plain integers of Python, by their definitions alone."""

import math
from statistics import NormalDist

# From Salmon et al., section 3: the multipliers and the Weyl constants, by the bits of a word.
CONSTANTS = {
    32: ((0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)),
    64: (
        (0xD2E7470EE14C6C93, 0xCA5A826395121157),
        (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B),
    ),
}
# What keeps the distributions apart; the words that are not 0 are 64 bits of pi.
APART = {"uniform": 0, "normal": 0x243F6A8885A308D3, "integers": 0x13198A2E03707344}


def philox(bits, counter, key):
    """Return the four words of Philox4x32-10 or Philox4x64-10."""
    multipliers, bumps = CONSTANTS[bits]
    key = list(key)
    for _ in range(10):
        (high_0, low_0), (high_1, low_1) = (
            divmod(multiplier * counter[place], 2**bits)
            for multiplier, place in zip(multipliers, (0, 2), strict=True)
        )
        counter = (high_1 ^ counter[1] ^ key[0], low_1, high_0 ^ counter[3] ^ key[1], low_0)
        key = [(word + bump) % 2**bits for word, bump in zip(key, bumps, strict=True)]
    return counter


def halves(word):
    """Return 64 bits as two words, the lower one first."""
    return word & 0xFFFFFFFF, word >> 32 & 0xFFFFFFFF


def key(*names):
    """Return the low and the high word of a key, as unsigned integers."""
    state = (len(names), 0, 0, 0)
    for name in names:
        state = philox(32, state, halves(name))
    return state[0] | state[1] << 32, state[2] | state[3] << 32


def blocks(name, key, i):
    """Yield 64 bits of each block of a number; blocks after the first are for repeated draws."""
    low, high = (word % 2**64 for word in key)
    block = (*halves(i), *halves(high))
    while True:
        block = philox(32, block, halves(low ^ APART[name]))
        yield block[0] | block[1] << 32


def uniform(key, i):
    return (next(blocks("uniform", key, i)) >> 11) / 2**53


def normal(key, i):
    return NormalDist().inv_cdf((next(blocks("normal", key, i)) >> 11 | 1) / 2**53)


def integers(key, i, bound):
    for word in blocks("integers", key, i):
        drawn, rest = divmod(word * bound, 2**64)
        if rest >= 2**64 % bound:
            return drawn
    raise AssertionError


def distribution(x):
    """Return the probability of a normal variate below x."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))
