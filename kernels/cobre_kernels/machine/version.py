"""The version of the machine code: a hash of our sources.

Records, statuses and calls are in the machine code of the kernels, in what Python reads and writes,
and in users' compiled functions. So the file of machine code has the hash, and code of other
sources is never run. The types of users' functions carry it too, because numba's cache knows only
the source file of the function that it stores.
"""

import os
import pathlib

try:
    from _blake2 import blake2b  # hashlib, which has the same, loads OpenSSL: 4 MB for each rank
except ImportError:  # a Python that is built in another way
    from hashlib import blake2b


def sources_of(folder, parts=None):
    """Return the source files of a package; with ``parts``, of its top and these folders of it.

    Editors, archives and file systems leave other files beside them, whose names no module can
    have. Where there are no sources, the compiled modules in their places stand for them.
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
    """Return the hexadecimal hash of source files; without any (a zip), a new one in each call."""
    digest = blake2b(b"" if sources else os.urandom(16))
    for path in sorted(sources):
        # From the package on: a wheel has been built in another folder than it is installed in.
        name = path.as_posix().rpartition("/cobre_")[2]
        digest.update(b"\0".join([name.encode(), path.read_bytes()]))
    return digest.hexdigest()[:16]


_AT_IMPORT = hash_of(kernel_sources())  # of what the modules of this process were made of


def source_hash():
    """Return the hash of this package, as this process has imported it."""
    return _AT_IMPORT


def is_replaced():
    """Tell whether this package was replaced since: another version is there, or none."""
    sources = kernel_sources()
    return bool(sources) and hash_of(sources) != _AT_IMPORT
