"""The folder of compiled kernels: the user's own, with all versions that make them in its name.

Neither the place of the sources nor their dates are in the name. So a new virtual environment, or a
new clone, with the same versions finds the kernels that another one has compiled. After an upgrade
of any of them the folder is another one. numba tells processors apart inside it.

numba keeps pickles there, which run code when they are loaded. So the folder is used only if it is
this user's, and no other user may write to it, or replace it. That holds for
the folder that ``NUMBA_CACHE_DIR`` names, too. One that other users may write to is refused with a
sentence, and kernels are kept in the user's own. This file imports nothing of numba, because
launchers look for the folder too.
"""

import contextlib
import errno
import functools
import hashlib
import importlib.metadata
import os
import pathlib
import platform
import stat
import sys

if os.name == "posix":
    import grp
    import pwd

from cobre_kernels.machine.compiling.hashing import source_hash

COMPILED_BY = ("numba", "llvmlite", "numpy")
CHOSEN, CHOSEN_RULES = "NUMBA_CACHE_DIR", "NUMBA_CACHE_LOCATOR_CLASSES"
# They change nothing that is compiled; a launcher sets the first itself.
IRRELEVANT = ("NUMBA_NUM_THREADS", CHOSEN, CHOSEN_RULES)


def cache_folder(environ):
    """Return this user's cache folder of the package; ``OSError`` for a user without a home."""
    cache = environ.get("XDG_CACHE_HOME")
    try:
        own = pathlib.Path(cache) if cache else pathlib.Path("~/.cache").expanduser()
    except RuntimeError as error:
        raise FileNotFoundError(errno.ENOENT, str(error)) from None
    return own / "cobre_comm"


def kernel_folder(environ):
    """Return the folder for kernels of these versions, made if need be, or None.

    None: the user has told numba by which rules to find places, or there is no safe place.
    """
    if os.name != "posix" or environ.get(CHOSEN_RULES):
        return None
    for own in _places(environ):
        folder = own / f"kernels-{version_key(environ)}"
        with contextlib.suppress(OSError):
            own.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            if not (danger(own) or danger(folder)):
                return folder
    return None


def _places(environ):
    """Yield folders of this package: in the one that the user has named, then in the usual one."""
    if environ.get(CHOSEN) and not refusal(environ):
        yield _chosen(environ) / "cobre_comm"
    with contextlib.suppress(OSError):
        yield cache_folder(environ)


def _chosen(environ):
    return pathlib.Path(environ[CHOSEN]).resolve()


def refusal(environ):
    """Return a sentence if the folder that the user has named is not used, else ""."""
    if os.name != "posix" or not environ.get(CHOSEN):
        return ""
    found = danger(_chosen(environ))
    return found and (
        f"kernels are not kept in {CHOSEN}={environ[CHOSEN]}, because {found}, and whoever writes "
        "there could have this program run his code; name a folder that you alone may write to "
        "(mkdir -m 700), or unset it: then kernels are kept in ~/.cache/cobre_comm"
    )


def danger(folder):
    """Return why another user may put files into a folder, or put another one in its place, or "".

    Of a folder that does not exist yet, the folders above it are looked at.
    """
    owners = os.geteuid(), 0
    status = _status(folder)
    if status is not None:
        if not stat.S_ISDIR(status.st_mode):
            return f"{folder} is not a folder"
        if status.st_uid not in owners:
            return f"{folder} belongs to user {status.st_uid}"
        if _others_write(status):
            return f"others may write to {folder}"
    below = status
    for parent in folder.parents:
        status = _status(parent)
        if status is not None and _others_write(status):
            if not status.st_mode & stat.S_ISVTX:
                return f"others may write to {parent}"
            # Where only owners may rename: what another user has made there is still his.
            if below is not None and below.st_uid not in owners:
                return f"in {parent}, others own what it lies in"
        below = status
    return ""


def _status(path):
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def _others_write(status):
    """Tell whether any user but the owner and root may write."""
    if status.st_mode & stat.S_IWOTH:
        return True
    return bool(status.st_mode & stat.S_IWGRP) and not _is_of_one_user(status.st_gid)


@functools.cache
def _is_of_one_user(group):
    """Tell whether a group is root's, or the one that many systems make for each user."""
    if group == 0:
        return True
    try:
        name, found = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    return found.gr_name == name and set(found.gr_mem) <= {name}


def version_key(environ):
    """Return a hash of all that decides on the compiled code, except for the processor."""
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
