"""What users pass: which arguments fit a call, and what is said of arguments that do not fit.

Three files check the arguments of collectives. ``slow_path.py`` checks them in Python, and
``jit/arguments.py`` checks their types in ``@njit`` code. ``collective/checks.py`` of the kernels
checks their values, for Python and ``@njit`` code.
"""
