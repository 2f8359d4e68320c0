"""Random numbers by name: the right numbers, and the same bits for every caller."""

import itertools
import os

import numpy as np
import pytest
from cobre_kernels.random.philox import encrypt
from cobre_kernels.random.quantile import quantile
from numba import config, njit, prange, vectorize

from cobre_comm import random
from cobre_comm.testing.cases.collectives.float_modes import MODES, mode_of
from tests.command import python
from tests.random import reference

# From kat_vectors of Random123: the counter, the key, and the result.
ONES_32, ONES_64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
KNOWN = {
    32: [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (
            (ONES_32,) * 4, (ONES_32,) * 2,
            (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
        ),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
    64: [
        (
            (0, 0, 0, 0), (0, 0),
            (0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B),
        ),
        (
            (ONES_64,) * 4, (ONES_64,) * 2,
            (0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0),
        ),
    ],
}  # fmt: skip
NAMES = [
    (0,),
    (1,),
    (-1,),
    (1, 0),
    (0, 1),
    (2026, 3, 41, 7),
    (-(2**63), 2**63 - 1),
    tuple(range(9)),
]
INDICES = [0, 1, 2, 77, 2**31, 2**32, 2**32 + 1, 2**63 - 1, -1, -(2**63)]
BOUNDS = [1, 2, 3, 10, 2**31 + 1, 2**32, 2**62 + 1, 3 * 2**61, 2**63 - 1]
encrypt_compiled = njit(lambda words: encrypt(*words))


@pytest.mark.quick
@pytest.mark.parametrize(("bits", "vector"), [(b, each) for b in KNOWN for each in KNOWN[b]])
def test_known_answers_of_random123(bits, vector):
    counter, key, right = vector
    assert reference.philox(bits, counter, key) == right
    if bits == 32:
        assert encrypt_compiled((*counter, *key)) == right


def test_the_reference_gives_the_words_of_numpys_philox_too():
    """NumPy's words have 64 bits: the rounds are those for 32 bits, with other constants."""
    counter, key = (2**64 - 2, 3, 5, 7), (11, 2**64 - 13)
    whole = sum(word << 64 * place for place, word in enumerate(counter))
    generator = np.random.Philox(counter=whole, key=key[0] | key[1] << 64)
    for step in (1, 2, 3):  # NumPy counts up before it encrypts
        later = tuple((whole + step) >> 64 * place & ONES_64 for place in range(4))
        assert tuple(map(int, generator.random_raw(4))) == reference.philox(64, later, key)


def test_blocks_are_those_of_the_reference():
    words = np.random.default_rng(1).integers(0, 2**32, (200, 6)).tolist()
    for a, b, c, d, *key in words:
        assert encrypt_compiled((a, b, c, d, *key)) == reference.philox(32, (a, b, c, d), key)


def _ulps(x, y):
    return abs(x - y) / np.spacing(abs(y))


@pytest.mark.quick
@pytest.mark.parametrize("names", NAMES)
def test_numbers_are_those_of_the_reference(names):
    key = random.key(*names)
    assert tuple(word % 2**64 for word in key) == reference.key(*names)
    for i in INDICES:
        assert random.uniform(key, i) == reference.uniform(key, i)
        assert _ulps(random.normal(key, i), reference.normal(key, i)) <= 4
        for bound in BOUNDS:
            assert random.integers(key, i, bound) == reference.integers(key, i, bound)


def test_an_integer_that_would_be_favoured_is_drawn_anew():
    """With a bound as large as this, one word in four has to be drawn again."""
    key, bound = random.key(5), 3 * 2**61
    first = [next(reference.blocks("integers", key, i)) for i in range(100)]
    anew = [i for i, word in enumerate(first) if word * bound % 2**64 < 2**64 % bound]
    assert len(anew) > 10
    for i in anew:
        assert random.integers(key, i, bound) == reference.integers(key, i, bound)
        assert random.integers(key, i, bound) != first[i] * bound >> 64


def test_quantiles_far_from_the_middle():
    at = njit(lambda p: quantile(p))
    below = [k * 2.0**-e for e in range(1, 54) for k in (1, 1.25) if k * 2.0**-e < 1]
    for p in (*below, 0.074999, 0.075001, 0.0749999999999999):
        assert _ulps(at(p), reference.NormalDist().inv_cdf(p)) <= 4 or at(p) == 0.0, p
        assert at(1.0 - p) == -at(p) or 1.0 - (1.0 - p) != p, p
    assert [at(p) for p in sorted(below)] == sorted(at(p) for p in below)


def one_by_one(key, indices, bound):
    drawn = [(random.uniform(key, i), random.normal(key, i)) for i in indices]
    return drawn, [random.integers(key, i, bound) for i in indices]


def in_compiled_code(key, indices, bound):
    uniforms, normals = np.empty(indices.size), np.empty(indices.size)
    whole = np.empty(indices.size, np.int64)
    for n in prange(indices.size):
        uniforms[n] = random.uniform(key, indices[n])
        normals[n] = random.normal(key, i=indices[n])
        whole[n] = random.integers(key, indices[n], bound=bound)
    return uniforms, normals, whole


def of_arrays(key, indices, bound):
    return (
        random.uniform(key, indices),
        random.normal(key, i=indices),
        random.integers(key, indices, bound=bound),
    )


CALLERS = {
    "arrays": of_arrays,
    "njit": njit(in_compiled_code),
    "njit, arrays": njit(of_arrays),
    "fastmath": njit(fastmath=True, error_model="numpy")(in_compiled_code),
    "fastmath, arrays": njit(fastmath=True)(of_arrays),
    "prange": njit(parallel=True, fastmath=True)(in_compiled_code),
}


@pytest.mark.parametrize("caller", CALLERS)
def test_every_caller_gets_the_same_bits(caller):
    key, bound = random.key(8, 3), 3 * 2**61
    indices = np.arange(-500, 5000)
    pairs, whole = one_by_one(key, indices.tolist(), bound)
    drawn = CALLERS[caller](key, indices, bound)
    for right, found in zip((*zip(*pairs, strict=True), whole), drawn, strict=True):
        assert np.array(right).tobytes() == found.tobytes()


@pytest.mark.parametrize("caller", ["arrays", "njit, arrays"])
def test_arrays_of_every_shape_and_integer(caller):
    """Each layout is tried with one type of integers, because numba compiles each pair anew."""
    key = random.key(1)
    square = np.arange(12).reshape(3, 4)
    whole_lines = square.astype("u4")
    for indices in (whole_lines, square.astype("i2").T, square[:, ::2]):
        for drawn in CALLERS[caller](key, indices, 7):
            assert drawn.shape == indices.shape
        uniforms, _, whole = CALLERS[caller](key, indices, 7)
        assert uniforms[2, 1] == random.uniform(key, int(indices[2, 1]))
        assert whole[1, 0] == random.integers(key, indices[1, 0], 7)
        assert whole.dtype == np.int64
    assert [drawn.size for drawn in CALLERS[caller](key, whole_lines[:0], 7)] == [0, 0, 0]


def test_compiled_code_makes_the_same_keys():
    made = njit(lambda a, b, c, d: random.key(a, b, c, d))
    names = (np.uint64(2**63 - 1), np.int8(-3), 2**40, np.uint8(200))
    key = made(*names)
    assert isinstance(key, random.Key)
    assert key == random.key(*names)
    assert njit(lambda: random.key(4))() == random.key(4)


def test_in_a_vectorized_function():
    key = random.key(6)
    low, high = key

    @vectorize
    def drawn(i):
        return random.uniform(random.Key(low, high), i)

    assert np.array_equal(drawn(np.arange(50)), random.uniform(key, np.arange(50)))


WRONG = {
    "a float as a name": (random.key, (1, 2.0), TypeError),
    "a bool as a name": (random.key, (True,), TypeError),
    "a large name": (random.key, (1, np.uint64(2**63)), ValueError),
    "no key": (random.uniform, (3, 0), TypeError),
    "a pair": (random.normal, ((1, 2), 0), TypeError),
    "a float as i": (random.uniform, (random.Key(1, 2), 0.5), TypeError),
    "floats as i": (random.normal, (random.Key(1, 2), np.zeros(2)), TypeError),
    "bools as i": (random.normal, (random.Key(1, 2), np.zeros(2, "?")), TypeError),
    "unsigned i": (random.uniform, (random.Key(1, 2), np.zeros(2, "u8")), TypeError),
    "a large i": (random.uniform, (random.Key(1, 2), np.uint64(2**63)), ValueError),
    "bound 0": (random.integers, (random.Key(1, 2), 0, 0), ValueError),
    "a negative bound": (random.integers, (random.Key(1, 2), np.arange(2), -1), ValueError),
    "a large bound": (random.integers, (random.Key(1, 2), 0, np.uint64(2**63)), ValueError),
    "a float as bound": (random.integers, (random.Key(1, 2), 0, 2.0), TypeError),
    "a bool as bound": (random.integers, (random.Key(1, 2), np.arange(2), True), TypeError),
}


@pytest.mark.parametrize("caller", ["python", "njit"])
@pytest.mark.parametrize("what", WRONG)
def test_wrong_arguments(caller, what):
    function, arguments, error = WRONG[what]
    called = function if caller == "python" else njit(lambda given: function(*given))
    with pytest.raises(error, match=f"^({function.__name__}|random): ") as caught:
        called(*arguments) if caller == "python" else called(arguments)
    assert type(caught.value) is error


def test_names_of_all_lengths_and_distributions_have_keys_of_their_own():
    names = [n for length in (1, 2, 3) for n in itertools.product(range(-2, 3), repeat=length)]
    assert len({random.key(*each) for each in names}) == len(names)
    assert len({random.key(*each).low for each in names}) == len(names)
    key = random.key(1)
    drawn = [random.uniform(key, 0), random.integers(key, 0, 2**53) / 2**53]
    drawn.append(reference.distribution(random.normal(key, 0)))
    assert min(abs(a - b) for a, b in itertools.combinations(drawn, 2)) > 1e-3


# The digest that DIGEST prints; no later version may change it, because users repeat results.
PINNED = "3e4b879d991ea006"
DIGEST = """
import hashlib
import numpy as np
from cobre_comm import random

key, indices = random.key(2026, -3, 41, 7), np.arange(3000)
drawn = random.uniform(key, indices), random.normal(key, indices)
whole = random.integers(key, indices, 3 * 2**61)
print(hashlib.sha256(b"".join(each.tobytes() for each in (*drawn, whole))).hexdigest()[:16])
"""


@pytest.mark.parametrize("variables", [{}, {"NUMBA_DISABLE_JIT": "1"}], ids=["jit", "python"])
def test_bits_do_not_depend_on_the_version_or_the_compiler(variables):
    """Python rounds each operation as IEEE 754 says, and so does compiled code."""
    assert python("-c", DIGEST, env={**os.environ, **variables}).stdout.strip() == PINNED


PROGRAM = """
import sys
from cobre_comm import random
from numba import njit

if "another" in sys.argv:
    import cobre_comm.jit.types
    cobre_comm.jit.types.version_tag = lambda: "another"

@njit(cache=True)
def draw(key):
    return random.normal(key, 3)

@njit(cache=True)
def draw_again(seed):
    return draw(random.key(seed, 2))

assert draw_again(1) == random.normal(random.key(1, 2), 3)
print(sum(draw_again.stats.cache_hits.values()))
"""


@pytest.mark.slow
@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is cached")
def test_a_cached_function_is_compiled_anew_after_an_upgrade(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    hits = [
        python(program, version).stdout.strip()
        for version in ("this", "this", "another", "another")
    ]
    assert hits == ["0", "1", "0", "1"]


@pytest.mark.parametrize("mode", MODES)
def test_no_number_depends_on_the_floating_point_mode(mode):
    key, indices = random.key(5), np.arange(1000)
    usual = random.normal(key, indices).tobytes(), random.uniform(key, indices).tobytes()
    with mode_of(mode):
        found = random.normal(key, indices).tobytes(), random.uniform(key, indices).tobytes()
        compiled = compiled_normals(key, indices).tobytes()
    assert found == usual
    assert compiled == usual[0]


@njit
def compiled_normals(key, indices):
    drawn = np.empty(indices.size)
    for n, i in enumerate(indices):
        drawn[n] = random.normal(key, i)
    return drawn
