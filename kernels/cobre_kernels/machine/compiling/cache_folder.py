"""Where compiled kernels are kept: a folder of the user's own, named after all that makes them.

Neither the place of the sources nor their dates are in the name. So a new virtual environment, or a
new clone, with the same versions finds what another one has compiled; and after an upgrade of
anything the folder is another one. numba tells processors apart inside it.

What numba keeps there are pickles, which run code when they are loaded. So the folder is used only
if it is this user's, and nobody else may write to it. Imports nothing of numba: launchers ask too.
"""

import errno
import functools
import hashlib
import importlib.metadata
import os
import pathlib
import platform
import stat
import sys

from cobre_kernels.machine.compiling.hashing import source_hash

COMPILED_BY = ("numba", "llvmlite", "numpy")
CHOOSES_PLACE = ("NUMBA_CACHE_DIR", "NUMBA_CACHE_LOCATOR_CLASSES")
# They change nothing that is compiled; a launcher sets the first itself.
IRRELEVANT = ("NUMBA_NUM_THREADS", *CHOOSES_PLACE)


def cache_folder(environ):
    """Return the folder for what this user has compiled; ``OSError`` for a user without a home."""
    cache = environ.get("XDG_CACHE_HOME")
    try:
        own = pathlib.Path(cache) if cache else pathlib.Path("~/.cache").expanduser()
    except RuntimeError as error:
        raise FileNotFoundError(errno.ENOENT, str(error)) from None
    return own / "cobre_comm"


def kernel_folder(environ):
    """Return the folder for kernels of these versions, made if need be, or None.

    None: the user has told numba where to keep what it compiles, or there is no safe place. numba
    then goes by its own rules.
    """
    if os.name != "posix" or any(environ.get(name) for name in CHOOSES_PLACE):
        return None
    try:
        own = cache_folder(environ)
        folder = own / f"kernels-{version_key(environ)}"
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder if _is_private(own) and _is_private(folder) else None
    except OSError:
        return None


def version_key(environ):
    """Return a hash of all that decides which code is compiled, except for the processor."""
    parts = [source_hash(), sys.version, platform.machine(), *map(_version, COMPILED_BY)]
    parts += [
        f"{name}={value}"
        for name, value in sorted(environ.items())
        if name.startswith("NUMBA_") and name not in IRRELEVANT
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


@functools.cache
def _version(package):
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:  # it was not installed, but put on the path
        return package


def _is_private(folder):
    """Whether it is a folder of this user's, to which nobody else may write."""
    status = folder.lstat()
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return is_own and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
