"""The quantile function of the normal distribution, made only of operations that IEEE 754 rounds.

M. J. Wichura, "Algorithm AS 241: The percentage points of the normal distribution", Applied
Statistics 37 (1988), doi:10.2307/2347330, routine PPND16: relative error about 1e-16. C libraries
differ in the last bit of a logarithm, so the logarithm here is made of sums, products and quotients
too, by the algorithm of fdlibm's ``e_log.c`` (Sun Microsystems, 1993): error below 1 ulp.
"""

from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.elements import bits_of, float_of, square_root

CENTRAL = 0.425
CENTRAL_SQUARE = 0.180625
TAIL = 5.0

CENTRAL_NUMERATOR = (
    2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
    4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
    1.3314166789178437745e2, 3.3871328727963666080e0,
)  # fmt: skip
CENTRAL_DENOMINATOR = (
    5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
    2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
    4.2313330701600911252e1, 1.0,
)  # fmt: skip
MIDDLE_NUMERATOR = (
    7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
    1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0,
    4.63033784615654529590e0, 1.42343711074968357734e0,
)  # fmt: skip
MIDDLE_DENOMINATOR = (
    1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
    1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0,
    2.05319162663775882187e0, 1.0,
)  # fmt: skip
TAIL_NUMERATOR = (
    2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
    2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0,
    5.46378491116411436990e0, 6.65790464350110377720e0,
)  # fmt: skip
TAIL_DENOMINATOR = (
    2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
    7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
    5.99832206555887937690e-1, 1.0,
)  # fmt: skip

HALF_ROOT = 0.70710678118654752440
LN_2_HIGH = 6.93147180369123816490e-1  # its last bits are zero, so its product with k is exact
LN_2_LOW = 1.90821492927058770002e-10
EVEN = (1.531383769920937332e-1, 2.222219843214978396e-1, 3.999999999940941908e-1)
ODD = (1.479819860511658591e-1, 1.818357216161805012e-1, 2.857142874366239149e-1)
FIRST = 6.666666666666735130e-1


@routine
def _quotient(r, top, bottom):
    """Return the quotient of two polynomials of degree 7."""
    return _polynomial(r, *top) / _polynomial(r, *bottom)


@routine
def _polynomial(r, a, b, c, d, e, f, g, h):
    return ((((((a * r + b) * r + c) * r + d) * r + e) * r + f) * r + g) * r + h


@routine
def logarithm(x):
    """Return the natural logarithm of a positive, normal float64."""
    bits = bits_of(x)
    exponent = (bits >> 52) - 1022
    mantissa = float_of(bits & 0xFFFFFFFFFFFFF | 1022 << 52)  # in [0.5, 1)
    if mantissa < HALF_ROOT:
        mantissa, exponent = 2.0 * mantissa, exponent - 1
    f = mantissa - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * ((EVEN[0] * w + EVEN[1]) * w + EVEN[2])
    odd = z * (((ODD[0] * w + ODD[1]) * w + ODD[2]) * w + FIRST)
    half_square = 0.5 * f * f
    k = float(exponent)
    return k * LN_2_HIGH - ((half_square - (s * (half_square + (odd + even)) + k * LN_2_LOW)) - f)


@routine
def quantile(p):
    """Return x so that a standard normal variate is below x with probability p, 0 < p < 1.

    ``quantile(1 - p)`` is exactly ``-quantile(p)``, if ``1 - p`` is exact.
    """
    q = p - 0.5
    if abs(q) <= CENTRAL:
        r = CENTRAL_SQUARE - q * q
        return q * _quotient(r, CENTRAL_NUMERATOR, CENTRAL_DENOMINATOR)
    r = square_root(-logarithm(p if q < 0.0 else 1.0 - p))
    if r <= TAIL:
        x = _quotient(r - 1.6, MIDDLE_NUMERATOR, MIDDLE_DENOMINATOR)
    else:
        x = _quotient(r - TAIL, TAIL_NUMERATOR, TAIL_DENOMINATOR)
    return -x if q < 0.0 else x
