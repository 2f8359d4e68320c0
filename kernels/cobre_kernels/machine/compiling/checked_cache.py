"""Code that numba loads from its cache must be code for the types that numba looks for.

numba keeps the code of each signature of a function in a numbered file, and the numbers in an
index. Ranks compile at the same time, so they also save at the same time. If two ranks save
different signatures, both may take the same number. Then the index of one rank leads to the code of
the other rank. numba would run this code: for an array of int64, the code for float64. So the types
are compared at each load.

If a function was called with a jitted function as an argument, its index contains that argument,
and numba compiles the argument while it reads the index. If the argument has types of another
version of this package, numba raises an error. Then the index counts as empty.
``cobre_comm/jit/types.py`` puts the version into a type.
"""

import functools

from numba import NumbaError

from cobre_kernels.machine.compiling.numba_internals import IndexDataCacheFile, Signature, sigutils


@functools.cache
def check_loads():
    """From now on, treat code for other types than the wanted types as missing.

    numba then compiles the function, and puts the right code into the numbered file.
    """
    load = IndexDataCacheFile.load

    def load_checked(self, key):
        found = load(self, key)
        return found if found is None or _is_for(found, key[0]) else None

    IndexDataCacheFile.load = load_checked
    read = IndexDataCacheFile._load_index

    def read_checked(self):
        """Return the entries of an index, or no entries if it has types of another version."""
        try:
            return read(self)
        except NumbaError:
            return {}

    IndexDataCacheFile._load_index = read_checked


def _is_for(found, wanted):
    """Tell whether a compiled function has this signature, or no signature among its parts.

    Some types equal only themselves. When such a type has been pickled, the new type is not equal
    to the old. So types are also compared by their names.
    """
    parts = [part for part in found if isinstance(part, Signature)] if type(found) is tuple else []
    if not parts:
        return True
    arguments, result = sigutils.normalize_signature(wanted)
    known = parts[0].return_type, *parts[0].args
    looked_for = known[0] if result is None else result, *arguments
    return known == looked_for or str(known) == str(looked_for)
