"""What users pass: which arguments fit a call, and what is said of those that do not.

``slow_path.py`` checks the arguments of collectives in Python, ``jit/arguments.py`` their types in
``@njit`` code, and ``collective/checks.py`` of the kernels their values, for both.
"""
