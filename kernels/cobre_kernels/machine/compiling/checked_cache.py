"""What numba loads from its cache is compared with what it looks for.

numba keeps the code of each signature of a function in a numbered file, and an index of numbers. Of
two processes that save different signatures at once, each may take the same number, and the index
of one lead to the code of the other. numba runs that code: for an array of int64, what was compiled
for float64. Ranks save at once, because they compile at once.
"""

from numba.core import sigutils
from numba.core.caching import IndexDataCacheFile
from numba.core.typing.templates import Signature

_load = IndexDataCacheFile.load


def check_loads():
    """From now on, what was compiled for other types than those looked for counts as missing.

    numba then compiles, and puts the right code into that file.
    """
    IndexDataCacheFile.load = _load_checked


def _load_checked(self, key):
    found = _load(self, key)
    return found if found is None or _is_for(found, key[0]) else None


def _is_for(found, signature):
    """Tell whether the parts of a compiled function are of this signature, if one of them is any.

    Some types equal themselves only, and come out of two pickles: these have equal names.
    """
    wanted, _ = sigutils.normalize_signature(signature)
    for part in found:
        if isinstance(part, Signature):
            return tuple(part.args) == tuple(wanted) or str(part.args) == str(tuple(wanted))
    return True
