"""Finds the file of machine code for this machine: one in the package, or one that is made here.

The files of a wheel are in ``cobre_kernels/code``. A file fits if it was made from exactly these
sources, for this system, and for a level that this processor has. If no file fits (in a checkout,
after a change of sources, on another system), the build makes a file in the user's folder, once.
Our launchers make the file, if needed, before they start ranks. Ranks of another launcher find the
file, or make it. A lock lets only one process make it; the system drops the lock when that process
ends.
"""

import contextlib
import fcntl
import importlib
import importlib.util
import json
import os
import pathlib
import sys
import time

from cobre_kernels.machine.compiled import NOTHING_IS_COMPILED
from cobre_kernels.machine.places import danger, own_folder
from cobre_kernels.machine.target import LIBRARY, OBJECTS, file_name, levels, system
from cobre_kernels.machine.version import digest_of, is_replaced, source_hash

SHIPPED = pathlib.Path(__file__).parents[1] / "code"
CHOSEN = "COBRE_COMM_KERNELS"  # names a folder to try first, for tests and benchmarks of a level
MESSAGE = "cobre-comm: compiling kernels (once per machine and version)..."
VERSIONS_KEPT = 8  # several, because a user may have several clones of the sources


def fitting(folder, refused=frozenset()):
    """Return the best of a folder's files that fit and were not refused; None if there is none."""
    for level in levels():
        for kind in (LIBRARY, OBJECTS):
            path = folder / file_name(level, kind)
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                if path not in refused and _is_right(path.read_bytes(), level):
                    return path
    return None


def _is_right(content, level):
    """Tell whether a file was made from these sources for this level, and has not changed since."""
    code, _, last = content.rpartition(b"\n")
    table = json.loads(last)
    found = table["sources"], table["system"], table["level"], table["code"]
    # The code may have changed because of a full disk, an incomplete copy, or a bad disk.
    wanted = source_hash(), system(), level, digest_of(code)
    return found == wanted


def file_of_this_machine(refused=frozenset()):
    """Return the file, and make it if needed; never return a file that this process has refused.

    Raises
    ------
    ImportError
        If the file cannot be made; the error says what to do.
    """
    return _chosen(refused) or fitting(SHIPPED, refused) or _own(refused)


def _chosen(refused):
    """Return the file in the folder that the user has named, unless other users may write there."""
    folder = os.environ.get(CHOSEN) and pathlib.Path(os.environ[CHOSEN]).resolve()
    return fitting(folder, refused) if folder and not danger(folder) else None


def prepare():
    """Make the file, if needed, before ranks start; raise what file_of_this_machine raises."""
    if not NOTHING_IS_COMPILED:
        file_of_this_machine()


def _own_folder():
    return own_folder(os.environ, f"kernels-{source_hash()}")


def _own(refused=frozenset()):
    folder = _own_folder()
    found = fitting(folder, refused)
    if found is None:
        return _made_in(folder, refused)
    with contextlib.suppress(OSError):
        os.utime(folder)  # so that the versions that were used last are kept
    return found


def _made_in(folder, refused=frozenset()):
    if is_replaced():
        raise ImportError(
            f"cobre_kernels in {pathlib.Path(__file__).parents[1]} has been replaced since this "
            "process has imported it; start the program again"
        )
    if importlib.util.find_spec("numba") is None:
        raise ImportError(
            f"cobre_comm has no machine code for this processor ({levels()[0]}, {system()}) and "
            "these sources, and numba, which would make it, is not installed; install numba, or a "
            "wheel of cobre_comm for this system"
        )
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # without a lock, several processes may make the file
            lock = stack.enter_context((folder / "lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        found = fitting(folder, refused)  # another process may have made the file meanwhile
        if found is None:
            began = time.monotonic()
            _tell(MESSAGE)
            try:
                builder().build([levels()[0]], folder)
            except (OSError, RuntimeError) as error:
                raise ImportError(
                    f"the kernels of cobre_comm cannot be compiled: {error}"
                ) from error
            _tell(f"cobre-comm: kernels compiled in {time.monotonic() - began:.1f} s")
            _forget_old_versions(folder)
            found = fitting(folder, refused)
    if found is None:
        raise ImportError(f"this process cannot load the kernels of cobre_comm from {folder}")
    return found


def folder_of_others():
    """Return the folder beside our own code for kernels of other packages; it may not exist."""
    return _own_folder() / "others"


def builder():
    """Return ``machine/build.py``, which imports the kernels."""
    return importlib.import_module("cobre_kernels.machine.build")


def _tell(line):
    with contextlib.suppress(Exception):  # stderr may be closed or None, and then nobody reads this
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def _forget_old_versions(folder):
    """Delete the machine code of other versions, except for those that were used last."""
    import shutil

    found = [path for path in folder.parent.glob("kernels-*") if path != folder]
    with contextlib.suppress(OSError):
        found.sort(key=lambda path: path.stat().st_mtime)
        for path in found[: -VERSIONS_KEPT + 1]:
            shutil.rmtree(path, ignore_errors=True)
