"""The table of cases: a file for each collective, a row for each promise that backends keep.

The conformance suite and ``cobre-comm check`` read the table. ``collectives`` tests each collective
by itself, ``memory`` shared regions, ``mixed`` sequences of many calls, ``errors`` wrong calls, and
``faults`` ranks that are late or lost. The bodies of ranks need no pytest.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from cobre_comm.testing.cases.case import Case


@cache
def table() -> dict[str, tuple[Case, ...]]:
    """Return the rows of every module that has ``CASES``, by the name of the module.

    The rows of ``faults`` come last, because some of them end ranks.
    """
    found = {}
    for folder in (".collectives", ".memory", "", ".mixed", ".errors", ".faults"):
        package = importlib.import_module(__name__ + folder)
        for module in pkgutil.iter_modules(package.__path__):
            cases = importlib.import_module(f"{package.__name__}.{module.name}")
            if hasattr(cases, "CASES"):
                found[module.name] = tuple(cases.CASES)
    return found
