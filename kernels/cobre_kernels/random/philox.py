"""Philox4x32-10: 128 bits of counter become 128 random bits, by ten rounds with a key of 64 bits.

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3",
SC'11, doi:10.1145/2063384.2063405. Each word of 32 bits is in an int64, and both halves of a
product are cut to 32 bits. So compiled code, in which a product may wrap, and Python's integers
give the same words.
"""

from cobre_kernels.machine.compiled import routine

ROUNDS = 10
LOW_32 = 0xFFFFFFFF
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
BUMPS = (0x9E3779B9, 0xBB67AE85)  # added to the key in each round: golden ratio, sqrt(3) - 1


@routine
def high_half(word):
    """Return the upper 32 of 64 bits."""
    return (word >> 32) & LOW_32


@routine
def signed(high, low):
    """Return the int64 of two words of 32 bits."""
    return ((high ^ 0x80000000) - 0x80000000) << 32 | low


@routine
def encrypt(a, b, c, d, key_0, key_1):
    """Return the four words that Philox4x32-10 makes of four words of counter and two of key."""
    for _ in range(ROUNDS):
        first, second = MULTIPLIERS[0] * a, MULTIPLIERS[1] * c
        a, b, c, d = (
            high_half(second) ^ b ^ key_0, second & LOW_32,
            high_half(first) ^ d ^ key_1, first & LOW_32,
        )  # fmt: skip
        key_0, key_1 = (key_0 + BUMPS[0]) & LOW_32, (key_1 + BUMPS[1]) & LOW_32
    return a, b, c, d


@routine
def fold_names(names):
    """Return the two int64 into which a sequence of int64 names is folded.

    At first the state is the number of names. Then it is encrypted with each name in turn as the
    key. The encryption with a name is a bijection. So two states that differ still differ after
    both were encrypted with the same names.
    """
    state = begin_fold(len(names))
    for name in names:
        state = fold_name(state, name)
    return end_fold(state)


@routine
def begin_fold(count):
    """Return the state before the first of ``count`` names is folded."""
    return (count, 0, 0, 0)


@routine
def fold_name(state, name):
    """Return the state after one more name."""
    a, b, c, d = state
    return encrypt(a, b, c, d, name & LOW_32, high_half(name))


@routine
def end_fold(state):
    """Return the two words that the state becomes."""
    a, b, c, d = state
    return signed(b, a), signed(d, c)
