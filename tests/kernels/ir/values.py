"""Abstract values for IR: which memory an integer or a pointer points into, and how far.

A value is a dictionary from roots to places. A *root* is a piece of memory whose beginning is known
by name (the private state, the control region, ...), or None for a plain number. A *place* is a set
of offsets and a stride: the value is the root's address plus one of the offsets plus a multiple of
the stride; stride 0 means exactly the offsets. So rank r's cell is offsets {512, 640}, stride 512.
An empty dictionary is a value that nobody has computed yet, or does not matter (undef).

LOST is the root of what this arithmetic cannot follow: an access through it is always an error.
"""

import functools
import math
import re

LOST = "lost"
GLOBAL = "global"
MOST_OFFSETS = 64
PAGE_BYTES = 4096  # below a page, the bits of an address say nothing of where it points

UNKNOWN = {None: (frozenset({0}), 1)}  # some number
NOWHERE = {LOST: (frozenset({0}), 1)}


def exactly(number, root=None):
    """Return the value that is a number, or a root's address plus a number."""
    return {root: (frozenset({number}), 0)}


def is_number(value):
    """Whether a value has no root."""
    return set(value) <= {None}


def exact_numbers(value):
    """Return the numbers that a value can be, or None if they cannot be listed."""
    if not value or not is_number(value):
        return None
    offsets, stride = value[None]
    return offsets if stride == 0 else None


def _tidy(offsets, stride):
    if len(offsets) > MOST_OFFSETS:
        first = min(offsets)
        stride = math.gcd(stride, *(o - first for o in offsets))
        offsets = {first}
    return frozenset(offsets), stride


def join(*values):
    """Return the value that is one of several."""
    result = {}
    for value in values:
        for root, (offsets, stride) in value.items():
            seen, known = result.get(root, (frozenset(), 0))
            result[root] = _tidy(seen | offsets, math.gcd(known, stride))
    return result


def widen(old, new):
    """Join so that a loop ends: what a round of the loop adds becomes a multiple of a stride."""
    result = dict(old)
    for root, (offsets, stride) in new.items():
        if root not in old:
            result[root] = (offsets, stride)
            continue
        seen, known = old[root]
        first, extra = sorted(seen), sorted(offsets - seen)
        # Any pairing is sound; this one finds the step of a loop over several offsets.
        steps = [e - first[i % len(first)] for i, e in enumerate(extra)]
        result[root] = (seen, math.gcd(known, stride, *steps))
    return result


def add(a, b, sign=1):
    """Return a + b, or a - b."""
    result = {}
    for left, (offsets, stride) in a.items():
        for right, (others, other) in b.items():
            sums = {o + sign * p for o in offsets for p in others}
            place = _tidy(sums, math.gcd(stride, other))
            if right is None:
                root = left
            elif sign == 1:
                root = right if left is None else LOST
            else:
                root = None if left == right and left != LOST else LOST
            result = join(result, {root: place})
    return result


def multiply(a, b):
    """Return a * b."""
    if exact_numbers(b) == {1}:
        return a
    if not a or not b:
        return {}
    if not is_number(a) or not is_number(b):
        return _shifted_back(a, b)
    for factor, other in ((a, b), (b, a)):
        numbers = exact_numbers(factor)
        if numbers is not None and len(numbers) == 1:
            [number] = numbers
            offsets, stride = other[None]
            return {None: (frozenset(o * number for o in offsets), abs(stride * number))}
    for factor in (a, b):  # multiples of a stride stay multiples of it
        offsets, stride = factor[None]
        if offsets == {0}:
            return {None: (offsets, stride)}
    return UNKNOWN


def shift_right(a, bits):
    """Return ``a >> bits``; of an address, what :func:`multiply` can turn back into one."""
    if is_number(a):
        return UNKNOWN if a else {}
    near = bits is not None and 1 << bits <= PAGE_BYTES
    return {(root, bits): (o, 1) for root, (o, _) in a.items()} if near else NOWHERE


def _shifted_back(a, b):
    """Return what compilers make of rounding an address down: ``(a >> bits) * (1 << bits)``."""
    factors = exact_numbers(b)
    for root, (offsets, _) in a.items():
        if isinstance(root, tuple) and len(a) == 1 and factors == {1 << root[1]}:
            return {root[0]: (offsets, 1)}
    return NOWHERE


def mask(a, b):
    """Return a & b."""
    if not a or not b:
        return {}
    masks = exact_numbers(b)
    if masks is None or len(masks) != 1:
        return UNKNOWN if is_number(a) and is_number(b) else NOWHERE
    [bits] = masks
    if not is_number(a):
        if 0 <= bits < PAGE_BYTES:
            return UNKNOWN
        # Rounded down to a line or so: the same memory, somewhere. No address has the highest bit.
        near = -PAGE_BYTES <= (bits - 2**63 if bits >= 2**62 else bits) < 0
        return {root: (offsets, 1) for root, (offsets, _) in a.items()} if near else NOWHERE
    offsets, stride = a[None]
    low = stride & -stride
    if stride == 0 or 0 <= bits < low:  # what the stride adds is cut off
        return {None: (frozenset(o & bits for o in offsets), 0)}
    if bits >= 0 and bits.bit_count() <= 3:
        parts = {0}
        for place in range(bits.bit_length()):
            if bits >> place & 1:
                parts |= {p | 1 << place for p in parts}
        return {None: (frozenset(parts), 0)}
    return {None: (frozenset({0}), bits & -bits)}


def either(a, b):
    """Return a | b; a sum where no bit can be set in both."""
    numbers = exact_numbers(b)
    if a and numbers is not None and len(numbers) == 1:
        [bits] = numbers
        for offsets, stride in a.values():
            if bits < 0 or any(o & bits for o in offsets) or 0 < (stride & -stride) <= bits:
                break
        else:
            return add(a, b)
    return UNKNOWN if is_number(a) and is_number(b) else NOWHERE


@functools.cache
def constant(text):
    """Return the value of a constant as the IR writes it, or None if it is not one."""
    if re.fullmatch(r"-?\d+", text):
        return exactly(int(text))
    if text in ("null", "zeroinitializer", "false"):
        return exactly(0)
    if text == "true":
        return exactly(1)
    if text in ("undef", "poison"):
        return {}
    if "@" in text:
        return exactly(0, GLOBAL) if text.startswith("@") else {GLOBAL: (frozenset({0}), 1)}
    if text.startswith(("<", "splat")):
        lanes = re.findall(r"(?:i\d+) (-?\d+|true|false|undef|poison)", text)
        return join(*(constant(lane) for lane in lanes)) if lanes else UNKNOWN
    if text.startswith("inttoptr"):
        return exactly(int(re.search(r"i64 (-?\d+)", text).group(1)))
    return None if text.startswith("%") else UNKNOWN
