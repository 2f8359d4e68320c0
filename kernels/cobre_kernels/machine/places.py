"""The user's folder for machine code that is made on this machine.

Anybody who can write to the folder could make this program run other code. So a folder is used only
if it belongs to this user, and if no other user can write to the folder or replace it.
"""

import contextlib
import errno
import functools
import os
import pathlib
import stat

if os.name == "posix":
    import grp
    import pwd


def cache_folder(environ):
    """Return the package's folder in this user's cache; ``OSError`` if the user has no home."""
    cache = environ.get("XDG_CACHE_HOME")
    try:
        own = pathlib.Path(cache) if cache else pathlib.Path("~/.cache").expanduser()
    except RuntimeError as error:
        raise FileNotFoundError(errno.ENOENT, str(error)) from None
    return own / "cobre_comm"


def own_folder(environ, name):
    """Return a folder of this name to which only this user can write; make it if needed.

    The folder is in the user's cache, or otherwise among temporary files.
    """
    for place in _places(environ):
        folder = place / name
        with contextlib.suppress(OSError):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (danger(place) or danger(folder)) and os.access(folder, os.W_OK):
                return folder
    import tempfile  # here, because ranks that do not need it start faster without it

    alone = pathlib.Path(tempfile.mkdtemp(prefix="cobre_comm-")) / name  # for this process alone
    alone.mkdir(mode=0o700)
    return alone


def _places(environ):
    with contextlib.suppress(OSError):
        yield cache_folder(environ)
    import tempfile

    yield pathlib.Path(tempfile.gettempdir()).resolve() / f"cobre_comm-{os.geteuid()}"


def danger(folder):
    """Return why another user can put files into a folder, or replace it; "" if nobody can.

    If the folder does not exist yet, only the folders above it are checked.
    """
    owners = os.geteuid(), 0
    status = _status(folder)
    if status is not None:
        if not stat.S_ISDIR(status.st_mode):
            return f"{folder} is not a folder"
        if status.st_uid not in owners:
            return f"{folder} belongs to user {status.st_uid}"
        if _others_write(folder, status):
            return f"others may write to {folder}"
    below = status
    for parent in folder.parents:
        status = _status(parent)
        if status is not None and _others_write(parent, status):
            if not status.st_mode & stat.S_ISVTX:
                return f"others may write to {parent}"
            # In a sticky folder, another user can replace only entries that belong to that user.
            if below is not None and below.st_uid not in owners:
                return f"in {parent}, others own what it lies in"
        below = status
    return ""


def _status(path):
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def _others_write(path, status):
    """Tell whether any user but the owner and root may write.

    If the folder has an access list, the bits of the group are the most that the list allows to any
    user or group in it.
    """
    if status.st_mode & stat.S_IWOTH:
        return True
    if not status.st_mode & stat.S_IWGRP:
        return False
    return _has_access_list(path) or not _is_of_one_user(status.st_gid)


def _has_access_list(path):
    """Tell whether an access list adds to the bits of owner, group and others; acl(5)."""
    if not hasattr(os, "getxattr"):
        return False
    try:
        return bool(os.getxattr(path, "system.posix_acl_access", follow_symlinks=False))
    except OSError:
        return False


@functools.cache
def _is_of_one_user(group):
    """Tell whether a group is root's, or has this user alone, as groups have on many systems."""
    if group == 0:
        return True
    try:
        name, found = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    return found.gr_name == name and set(found.gr_mem) <= {name}
