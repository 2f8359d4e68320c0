"""What numba loads from its cache is compared with what it looks for.

numba keeps the code of each signature of a function in a numbered file, and an index of numbers. Of
two processes that save different signatures at once, each may take the same number, and the index
of one lead to the code of the other. numba runs that code: for an array of int64, what was compiled
for float64. Ranks save at once, because they compile at once.

If a function was called with a jitted one, its index contains that one, and numba compiles it as it
reads the index. For types of another version this is an error; the index then counts as empty.
"""

import functools

from numba import NumbaError

from cobre_kernels.machine.numba_internals import IndexDataCacheFile, Signature, sigutils


@functools.cache
def check_loads():
    """From now on, what was compiled for other types than those looked for counts as missing.

    numba then compiles, and puts the right code into that file.
    """
    load = IndexDataCacheFile.load

    def load_checked(self, key):
        found = load(self, key)
        return found if found is None or _is_for(found, key[0]) else None

    IndexDataCacheFile.load = load_checked
    read = IndexDataCacheFile._load_index

    def read_checked(self):
        """Return what is in an index, or nothing if it has code of another version."""
        try:
            return read(self)
        except NumbaError:
            return {}

    IndexDataCacheFile._load_index = read_checked


def _is_for(found, wanted):
    """Tell whether the parts of a compiled function are of this signature, if one of them is any.

    Some types equal themselves only, and come out of two pickles: these have equal names.
    """
    parts = [part for part in found if isinstance(part, Signature)] if type(found) is tuple else []
    if not parts:
        return True
    arguments, result = sigutils.normalize_signature(wanted)
    known = parts[0].return_type, *parts[0].args
    looked_for = known[0] if result is None else result, *arguments
    return known == looked_for or str(known) == str(looked_for)
