"""The exact sum of float64 values: an integer so wide that nothing is ever rounded off.

Every finite float64 is an integer times 2**-1074. The *digits* hold the sum of such integers in
base 2**32: digit k counts for 2**(32 k - 1074), and is signed while values are added, so that
carries can wait. Sums of different ranks are added digit by digit with integer arithmetic, whose
order does not matter; only the total is rounded, once, to nearest, ties to even. Infinities and
NaNs are counted beside the digits.

Few values go straight to their two digits. For many, each value first goes to the *bucket* of its
sign and exponent, which takes no shift and no carry; 2**31 values fit before a bucket could
overflow. Then the buckets go to the digits.

This is R. M. Neal's scheme of a small and a large superaccumulator ("Fast exact summation using
small and large superaccumulators", arXiv:1505.05571, 2015), with 64-bit digits that hold 32 bits
as there, and with two-word buckets instead of his one-word ones that have to be counted.
"""

import numpy as np
from numba import carray

from cobre_kernels.collective import dtypes
from cobre_kernels.collective.calls import ALLREDUCE, EXACT_SUM, Allreduce, ExactSum, Refusal
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.reduction.fold import SUM
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.atomics import WORD_BYTES
from cobre_kernels.machine.kernel import as_pointer, kernel, run
from cobre_kernels.machine.routine import routine

DIGITS = 67  # 2098 bits up to the largest float64, 46 more for the number of values
NANS, POSITIVE, NEGATIVE = DIGITS, DIGITS + 1, DIGITS + 2  # NaNs, +inf, -inf met
WORDS = DIGITS + 3

LOW_32 = 0xFFFFFFFF
SIGN = -(1 << 63)
ALL_BUT_SIGN = (1 << 63) - 1
MANTISSA = 0xFFFFFFFFFFFFF
HIDDEN = 1 << 52
SPECIAL = 0x7FF  # the exponent of infinities and NaNs
INFINITY = 0x7FF0000000000000
NOT_A_NUMBER = 0x7FF8000000000000
LARGEST_SHIFT = 2045  # of a finite result: its lowest bit is worth 2**(2045 - 1074)

ADDS_BEFORE_CARRY = 2046  # each adds less than 2**52 to a digit of less than 2**32
BUCKETS = 4096  # of two words each, indexed by the 12 bits of sign and exponent
ADDS_BEFORE_EMPTYING = 1 << 30  # each adds less than 2**32 to a word of 63 bits
MANY = 8192  # values from which filling and emptying the buckets costs less than it saves
SPAN = 4096  # float32 values that are widened at a time


@routine(error_model="numpy")
def _carry(digits):
    """Bring every digit but the last into [0, 2**32); the last one has the sign of the whole."""
    for k in range(DIGITS - 1):
        carry = digits[k] >> 32
        digits[k] -= carry << 32
        digits[k + 1] += carry


@routine(error_model="numpy")
def _add_one(digits, word):
    """Add the float64 with these bits to its two digits, or count it."""
    exponent = (word >> 52) & SPECIAL
    mantissa = word & MANTISSA
    if exponent == SPECIAL:
        if mantissa != 0:
            digits[NANS] += 1
        else:
            digits[NEGATIVE if word < 0 else POSITIVE] += 1
        return
    if exponent != 0:
        mantissa |= HIDDEN
        exponent -= 1
    k, shift = exponent >> 5, exponent & 31
    sign = word >> 63  # -1 or 0: (x ^ sign) - sign is -x or x
    digits[k] += (((mantissa << shift) & LOW_32) ^ sign) - sign
    digits[k + 1] += ((mantissa >> (32 - shift)) ^ sign) - sign


@routine(error_model="numpy")
def _add_few(digits, words):
    since_carry = 0
    for word in words:
        _add_one(digits, word)
        since_carry += 1
        if since_carry == ADDS_BEFORE_CARRY:
            _carry(digits)
            since_carry = 0
    _carry(digits)


@routine(error_model="numpy")
def _fill(buckets, digits, words):
    """Add values to the buckets of their sign and exponent: low 32 bits, and the 21 above.

    Zeros and subnormal numbers, which have no hidden bit, and what is not finite go to the digits.
    """
    for word in words:
        bucket = np.uint64(word) >> np.uint64(52)
        if (bucket + np.uint64(1)) & np.uint64(SPECIAL - 1) == 0:
            if word & ALL_BUT_SIGN != 0:
                _add_one(digits, word)
            continue
        low = bucket + bucket
        buckets[low] += np.uint64(word & LOW_32)
        buckets[low + np.uint64(1)] += np.uint64((word & MANTISSA | HIDDEN) >> 32)


@routine(error_model="numpy")
def _empty(buckets, digits):
    """Add each word of the buckets to its three digits, and zero it."""
    _carry(digits)
    for number in range(2 * BUCKETS):
        value = np.int64(buckets[number])
        if value == 0:
            continue
        buckets[number] = 0
        bucket = number >> 1
        position = (bucket & SPECIAL) - 1 + 32 * (number & 1)
        k, shift = position >> 5, position & 31
        sign = -(bucket >> 11)
        above = value >> (32 - shift)
        digits[k] += (((value << shift) & LOW_32) ^ sign) - sign
        digits[k + 1] += ((above & LOW_32) ^ sign) - sign
        digits[k + 2] += ((above >> 32) ^ sign) - sign
    _carry(digits)


@routine(error_model="numpy")
def _add_many(digits, words):
    buckets = np.zeros(2 * BUCKETS, dtype=np.uint64)
    for begin in range(0, words.size, ADDS_BEFORE_EMPTYING):
        _fill(buckets, digits, words[begin : begin + ADDS_BEFORE_EMPTYING])
        _empty(buckets, digits)


@routine(error_model="numpy")
def _add_widened(digits, values):
    """Add float32 values; every one of them is a float64 too."""
    buckets = np.zeros(2 * BUCKETS if values.size >= MANY else 0, dtype=np.uint64)
    wide = np.empty(SPAN, dtype=np.float64)
    in_buckets = 0
    for begin in range(0, values.size, SPAN):
        part = values[begin : begin + SPAN]
        for i in range(part.size):
            wide[i] = part[i]
        words = wide[: part.size].view(np.int64)
        if buckets.size == 0:
            _add_few(digits, words)
            continue
        _fill(buckets, digits, words)
        in_buckets += words.size
        if in_buckets > ADDS_BEFORE_EMPTYING - SPAN or begin + SPAN >= values.size:
            _empty(buckets, digits)
            in_buckets = 0


@routine(error_model="numpy")
def _add(call):
    """Add the values of the call to its digits, which are zero."""
    accumulator = carray(as_pointer(call.digits), WORDS, np.int64)
    if call.dtype == dtypes.FLOAT32:
        _add_widened(accumulator, carray(as_pointer(call.values), call.count, np.float32))
    elif call.count >= MANY:
        _add_many(accumulator, carray(as_pointer(call.values), call.count, np.int64))
    else:
        _add_few(accumulator, carray(as_pointer(call.values), call.count, np.int64))


@routine(error_model="numpy")
def _rounded(digits):
    """Bits of the float64 nearest to the magnitude that carried digits hold; ties to even."""
    top = DIGITS - 1
    while top >= 0 and digits[top] == 0:
        top -= 1
    if top < 0:
        return 0
    highest = 32 * top
    while digits[top] >> (highest - 32 * top) > 1:
        highest += 1
    shift = highest - 52  # so many bits are rounded off
    if shift <= 0:  # subnormal, or of the smallest exponent: the integer is the pattern itself
        return digits[0] | digits[1] << 32
    if shift > LARGEST_SHIFT:
        return INFINITY
    k, s = shift >> 5, shift & 31
    mantissa = digits[k] >> s | digits[k + 1] << (32 - s)
    if s > 0 and k + 2 < DIGITS:
        mantissa |= digits[k + 2] << (64 - s)
    k, s = (shift - 1) >> 5, (shift - 1) & 31
    if digits[k] >> s & 1:
        is_tie = digits[k] & ((1 << s) - 1) == 0
        for j in range(k):
            is_tie = is_tie and digits[j] == 0
        if not is_tie or mantissa & 1:
            mantissa += 1
    # The hidden bit adds 1 to the exponent; a mantissa that was rounded up to 2**53 one more.
    return (shift << 52) + mantissa


@routine(error_model="numpy")
def _round(digits):
    """Replace the first of the digits by the bits of the float64 nearest to their sum.

    A sum of zero is +0.0. Any NaN, or infinities of both signs, give NaN.
    """
    accumulator = carray(as_pointer(digits), WORDS, np.int64)
    nans, positive, negative = accumulator[NANS], accumulator[POSITIVE], accumulator[NEGATIVE]
    _carry(accumulator)
    is_negative = accumulator[DIGITS - 1] < 0
    if is_negative:
        for k in range(DIGITS):
            accumulator[k] = -accumulator[k]
        _carry(accumulator)
    bits = _rounded(accumulator)
    if nans > 0 or (positive > 0 and negative > 0):
        is_negative, bits = False, NOT_A_NUMBER
    elif positive > 0 or negative > 0:
        is_negative, bits = negative > 0, INFINITY
    accumulator[0] = np.int64(bits | SIGN) if is_negative else np.int64(bits)


@kernel(COMM, ExactSum)
def exact_sum_entry(comm, call):
    """Add this rank's values, merge the digits of all ranks by an allreduce, round once.

    The first of the digits becomes the bits of the result.
    """
    if call.count < 0:
        run(comm.refuse, comm, Refusal(EXACT_SUM, -call.count, 0))
        return -call.count
    _add(call)
    digits = call.digits
    merge = Allreduce(digits, WORDS, digits, WORDS, WORD_BYTES, dtypes.EXACT, SUM)
    outcome = run(comm.collectives[ALLREDUCE].entry, comm, merge)
    if outcome == OK:
        _round(digits)
    return outcome


KERNELS = (exact_sum_entry,)
