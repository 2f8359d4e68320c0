"""The file of machine code for this machine: the one in the package, or one that is made here.

The files of a wheel are in ``cobre_kernels/code``. A file fits if it was made from these very
sources, for this system, and for a level that this processor has. If none fits (a checkout, changed
sources, another system), the build makes a file in the user's folder, once. Our launchers have the
file made before they start ranks. Ranks that another launcher has started find the file, or make
it. A lock lets only one process make it; the system drops the lock when that process ends.
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
CHOSEN = "COBRE_COMM_KERNELS"  # a folder to look in first, for tests and benchmarks of a level
MESSAGE = "cobre-comm: compiling kernels (once per machine and version)..."
VERSIONS_KEPT = 8  # a user may have several clones of the sources


def fitting(folder, refused=frozenset()):
    """Return the best file of a folder that fits, except for refused ones, or None."""
    for level in levels():
        for kind in (LIBRARY, OBJECTS):
            path = folder / file_name(level, kind)
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                if path not in refused and _is_right(path.read_bytes(), level):
                    return path
    return None


def _is_right(content, level):
    """Tell whether a file was made of these sources for this level, and has not changed since."""
    code, _, last = content.rpartition(b"\n")
    table = json.loads(last)
    found = table["sources"], table["system"], table["level"], table["code"]
    # The code may have changed by a full disk, by a copy that has ended early, or by a bad disk.
    wanted = source_hash(), system(), level, digest_of(code)
    return found == wanted


def file_of_this_machine(refused=frozenset()):
    """Return the file, which is made if need be; never a file that this process has refused.

    Raises
    ------
    ImportError
        If the file cannot be made; the error says what to do.
    """
    return _chosen(refused) or fitting(SHIPPED, refused) or _own(refused)


def _chosen(refused):
    """Return the file in the folder that the user has named, unless others may write there."""
    folder = os.environ.get(CHOSEN) and pathlib.Path(os.environ[CHOSEN]).resolve()
    return fitting(folder, refused) if folder and not danger(folder) else None


def prepare():
    """Have the file made, if need be, before ranks start; raise as file_of_this_machine does."""
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
        os.utime(folder)  # the versions that are used last are kept
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
        with contextlib.suppress(OSError):  # without a lock each process makes the file
            lock = stack.enter_context((folder / "lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        found = fitting(folder, refused)  # another process has made it meanwhile
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
    with contextlib.suppress(Exception):  # stderr may be closed or None: then nobody reads it
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def _forget_old_versions(folder):
    """Delete the machine code of other versions, except for the few that were used last."""
    import shutil

    found = [path for path in folder.parent.glob("kernels-*") if path != folder]
    with contextlib.suppress(OSError):
        found.sort(key=lambda path: path.stat().st_mtime)
        for path in found[: -VERSIONS_KEPT + 1]:
            shutil.rmtree(path, ignore_errors=True)
