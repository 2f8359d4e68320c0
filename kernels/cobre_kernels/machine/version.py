"""The version of the machine code: a hash of our sources.

The machine code of the kernels, our code in Python and users' compiled functions all depend on our
records, statuses and calls. So a file of machine code contains the hash, and code of other sources
is never run. Our types in users' compiled functions contain the hash too, because numba's cache
notices only changes in the source file of the function that it stores.
"""

import os
import pathlib

try:
    from _blake2 import blake2b  # hashlib has it too, but loads OpenSSL: 4 MB for each rank
except ImportError:  # this Python was built in another way
    from hashlib import blake2b


def sources_of(folder, parts=None):
    """Return the source files of a package; with ``parts``, only of its top and of these folders.

    If a file has a name that no module can have, it is left out: editors, archives and file systems
    leave such files beside sources. If there are no sources, compiled modules (.pyc) are used.
    """
    found = {".py": [], ".pyc": []}
    for place, folders, names in os.walk(folder):
        if parts is not None and place == str(folder):
            folders[:] = [each for each in folders if each in parts]
        for name in names:
            stem, point, suffix = name.rpartition(".")
            if point + suffix in found and stem.isidentifier():
                found[point + suffix].append(pathlib.Path(place, name))
    return found[".py"] or found[".pyc"]


def kernel_sources():
    """Return every source file of this package."""
    return sources_of(pathlib.Path(__file__).parents[1])


def digest_of(code):
    """Return the hexadecimal hash of some bytes."""
    return blake2b(code, digest_size=32).hexdigest()


def hash_of(sources):
    """Return the hexadecimal hash of source files; if there are none (a zip), always a new hash."""
    digest = blake2b(b"" if sources else os.urandom(16))
    for path in sorted(sources):
        # The path from the package on, because a wheel is not installed in the folder of its build.
        name = path.as_posix().rpartition("/cobre_")[2]
        digest.update(b"\0".join([name.encode(), path.read_bytes()]))
    return digest.hexdigest()[:16]


_AT_IMPORT = hash_of(kernel_sources())  # of the sources that this process has imported


def source_hash():
    """Return the hash of this package, as this process has imported it."""
    return _AT_IMPORT


def is_replaced():
    """Tell whether the files of this package are of another version than the imported one."""
    sources = kernel_sources()
    return bool(sources) and hash_of(sources) != _AT_IMPORT
