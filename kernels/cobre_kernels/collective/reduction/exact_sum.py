"""The exact sum of float64 values: an integer so wide that nothing is ever rounded off.

Every finite float64 is an integer times 2**-1074. The *digits* hold the sum of such integers in
base 2**32: digit k stands for multiples of 2**(32 k - 1074). A digit is a signed word of 64 bits,
so carries can wait while values are added. The digits of different ranks are added as integers, so
their order does not matter. Only the total is rounded, once, to nearest, ties to even. Infinities
and NaNs are counted beside the digits.

If there are few values, each value is added to its two digits at once. If there are many, each
value is first added to the *bucket* of its sign and exponent, which takes no shift and no carry;
2**31 values fit before a bucket could overflow. Then the buckets are added to the digits.

The scheme is R. M. Neal's small and large superaccumulator ("Fast exact summation using small and
large superaccumulators", arXiv:1505.05571, 2015). As in his scheme, a 64-bit digit holds 32 bits of
the sum. His buckets have one word, so the values in each bucket have to be counted; our buckets
have two words.
"""

import numpy as np

from cobre_kernels.collective import dtypes
from cobre_kernels.collective.calls import ALLREDUCE, EXACT_SUM, Allreduce, ExactSum, Refusal
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.reduction.fold import SUM
from cobre_kernels.collective.status import NO_MEMORY, OK
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import WORD_BYTES
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.elements import element_access
from cobre_kernels.machine.kernel import kernel, run
from cobre_kernels.machine.record import table_at

DIGITS = 67  # 2098 bits up to the largest float64, and 46 more for the number of values
NANS, POSITIVE, NEGATIVE = DIGITS, DIGITS + 1, DIGITS + 2  # counts of NaNs, of +inf and of -inf
WORDS = DIGITS + 3

LOW_32 = 0xFFFFFFFF
SIGN = -(1 << 63)
ALL_BUT_SIGN = (1 << 63) - 1
MANTISSA = 0xFFFFFFFFFFFFF
HIDDEN = 1 << 52
SPECIAL = 0x7FF  # the exponent of infinities and NaNs
INFINITY = 0x7FF0000000000000
NOT_A_NUMBER = 0x7FF8000000000000
LARGEST_SHIFT = 2045  # of a finite sum: the lowest bit of its mantissa is 2**(2045 - 1074)

ADDS_BEFORE_CARRY = 2046  # each addition adds less than 2**52 to a digit below 2**32
BUCKETS = 4096  # each has two words, and the 12 bits of sign and exponent as its index
ADDS_BEFORE_EMPTYING = 1 << 30  # each addition adds less than 2**32 to a word of 63 bits
MANY = 8192  # with this many values, buckets save more time than it takes to fill and empty them
SPAN = 4096  # float32 values that are widened together

SUBNORMAL_BELOW = 1 << 23  # a float32 is subnormal if its bits, without the sign, are below this
SMALLEST = 2.0**-149  # the smallest positive float32
ALL_BUT_SIGN_32 = (1 << 31) - 1

_load_float32, _store_float64 = element_access(np.float32)[0], element_access(np.float64)[1]
_load_int32 = element_access(np.int32)[0]


@routine
def _carry(digits):
    """Bring every digit but the last into [0, 2**32); the last digit gets the sign of the sum."""
    for k in range(DIGITS - 1):
        carry = digits[k] >> 32
        digits[k] -= carry << 32
        digits[k + 1] += carry


@routine
def _add_one(digits, word):
    """Add the float64 with these bits to its two digits; if it is not finite, count it."""
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
    sign = word >> 63  # -1 or 0, so that (x ^ sign) - sign is -x or x
    digits[k] += (((mantissa << shift) & LOW_32) ^ sign) - sign
    digits[k + 1] += ((mantissa >> (32 - shift)) ^ sign) - sign


@routine
def _add_few(digits, values, count):
    words = table_at(values)
    since_carry = 0
    for i in range(count):
        _add_one(digits, words[i])
        since_carry += 1
        if since_carry == ADDS_BEFORE_CARRY:
            _carry(digits)
            since_carry = 0
    _carry(digits)


@routine
def _fill(buckets, digits, values, count):
    """Add values to the buckets of their sign and exponent.

    The first word of a bucket gets the low 32 bits of a mantissa, and the second word the 21 bits
    above them. Subnormal numbers, which have no hidden bit, go to the digits at once, and so do
    infinities and NaNs, which the digits count.
    """
    words = table_at(values)
    for i in range(count):
        word = words[i]
        bucket = (word >> 52) & (BUCKETS - 1)
        if (bucket + 1) & (SPECIAL - 1) == 0:
            if word & ALL_BUT_SIGN != 0:
                _add_one(digits, word)
            continue
        buckets[2 * bucket] += word & LOW_32
        buckets[2 * bucket + 1] += (word & MANTISSA | HIDDEN) >> 32


@routine
def _empty(buckets, digits):
    """Add each word of the buckets to three digits, and set the word to zero."""
    _carry(digits)
    for number in range(2 * BUCKETS):
        value = buckets[number]
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


@routine
def _add_many(digits, buckets, values, count):
    for begin in range(0, count, ADDS_BEFORE_EMPTYING):
        some = min(count - begin, ADDS_BEFORE_EMPTYING)
        _fill(buckets, digits, values + WORD_BYTES * begin, some)
        _empty(buckets, digits)


@routine
def _widened(values, i):
    """Return a float32 as a float64, in any floating-point mode.

    In some modes the processor would treat a subnormal number as zero. So for a subnormal number
    the integer in its bits becomes a float64. The product of this float64 and SMALLEST is exact.
    """
    bits = np.int64(_load_int32(values, i))
    magnitude = bits & ALL_BUT_SIGN_32
    if magnitude >= SUBNORMAL_BELOW:
        return np.float64(_load_float32(values, i))
    return (-SMALLEST if bits < 0 else SMALLEST) * float(magnitude)


@routine
def _add_widened(digits, buckets, wide, values, count):
    """Add float32 values, SPAN of them at a time; a float64 represents every float32 exactly."""
    in_buckets = 0
    for begin in range(0, count, SPAN):
        some = min(count - begin, SPAN)
        for i in range(some):
            _store_float64(wide, i, _widened(values, begin + i))
        if count < MANY:
            _add_few(digits, wide, some)
            continue
        _fill(buckets, digits, wide, some)
        in_buckets += some
        if in_buckets > ADDS_BEFORE_EMPTYING - SPAN or begin + SPAN >= count:
            _empty(buckets, digits)
            in_buckets = 0


@routine
def _add(call):
    """Add the values of the call to its digits, which are zero; return OK or NO_MEMORY.

    The buckets, and the room for float32 values as float64, are allocated and freed here.
    """
    digits = table_at(call.digits)
    is_wide = call.dtype != dtypes.FLOAT32
    if is_wide and call.count < MANY:
        _add_few(digits, call.values, call.count)
        return OK
    memory = libc.zeroed_words(2 * BUCKETS + SPAN)
    if memory == 0:
        return NO_MEMORY
    buckets, wide = table_at(memory), memory + WORD_BYTES * 2 * BUCKETS
    if is_wide:
        _add_many(digits, buckets, call.values, call.count)
    else:
        _add_widened(digits, buckets, wide, call.values, call.count)
    libc.release_memory(memory)
    return OK


@routine
def _rounded(digits):
    """Return the bits of the float64 that is nearest to the sum in the digits; ties to even.

    The digits have been carried, and the sum is not negative.
    """
    top = DIGITS - 1
    while top >= 0 and digits[top] == 0:
        top -= 1
    if top < 0:
        return 0
    highest = 32 * top
    while digits[top] >> (highest - 32 * top) > 1:
        highest += 1
    shift = highest - 52  # the number of bits that are rounded off
    if shift <= 0:  # subnormal, or of the smallest exponent: the sum has the bits of the float64
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
    # The hidden bit adds 1 to the exponent. A mantissa that was rounded up to 2**53 adds 2.
    return (shift << 52) + mantissa


@routine
def _round(digits):
    """Replace the first digit by the bits of the float64 that is nearest to the sum in the digits.

    A sum of zero is +0.0. Any NaN gives NaN, and so do infinities of both signs.
    """
    accumulator = table_at(digits)
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
    accumulator[0] = bits | SIGN if is_negative else bits


@kernel(COMM, ExactSum)
def exact_sum_entry(comm, call):
    """Add this rank's values, add up the digits of all ranks by an allreduce, and round once.

    The bits of the result replace the first digit.
    """
    outcome = -call.count if call.count < 0 else _add(call)
    if outcome != OK:
        run(comm.refuse, comm, Refusal(EXACT_SUM, outcome, 0))
        return outcome
    digits = call.digits
    merge = Allreduce(digits, WORDS, digits, WORDS, WORD_BYTES, dtypes.EXACT, SUM)
    outcome = run(comm.collectives[ALLREDUCE].entry, comm, merge)
    if outcome == OK:
        _round(digits)
    return outcome
