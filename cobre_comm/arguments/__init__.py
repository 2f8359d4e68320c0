"""The arguments that users pass: which of them fit a call, and the sentences about all others.

Three files check the arguments of collectives. ``slow_path.py`` checks them in Python, and
``jit/arguments.py`` checks their types in ``@njit`` code. ``collective/checks.py`` of the kernels
checks their values, for Python and ``@njit`` code.
"""
