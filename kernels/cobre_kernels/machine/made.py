"""The file of machine code for this machine: the one in the package, or one that is made here.

The files of a wheel are in ``cobre_kernels/code``. A file serves if it was made from these very
sources, for this system, and for a level that this processor has. Where none serves (a checkout,
changed sources, another system), the build makes one in the user's folder, once. Launchers see to
that before their ranks start. Ranks that nothing of ours has started find the file, or make it. A
lock lets one of them make it, and ends with the process that holds the lock.
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
VERSIONS_KEPT = 8  # several clones of one user


def fitting(folder, refused=frozenset()):
    """Return the best file of a folder that serves here, or None; no file that is refused."""
    for level in levels():
        for kind in (LIBRARY, OBJECTS):
            path = folder / file_name(level, kind)
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                if path not in refused and _is_right(path.read_bytes(), level):
                    return path
    return None


def _is_right(content, level):
    """Tell whether a file was made of these sources for this level, and is as it was made."""
    code, _, last = content.rpartition(b"\n")
    table = json.loads(last)
    found = table["sources"], table["system"], table["level"], table["code"]
    # A full disk, a copy that has ended early, or a bad disk leaves other code.
    wanted = source_hash(), system(), level, digest_of(code)
    return found == wanted


def file_of_this_machine(refused=frozenset()):
    """Return the file, which is made if need be; none of those that this process refuses.

    Raises
    ------
    ImportError
        If it cannot be made; the error says what to do.
    """
    return _chosen(refused) or fitting(SHIPPED, refused) or _own(refused)


def _chosen(refused):
    """Return the file in the folder that the user has named, unless others may write there."""
    folder = os.environ.get(CHOSEN) and pathlib.Path(os.environ[CHOSEN]).resolve()
    return fitting(folder, refused) if folder and not danger(folder) else None


def prepare():
    """Have the file made, if need be, before ranks start; raise as its maker does."""
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
        with contextlib.suppress(OSError):  # where it cannot be locked, each process makes its own
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
    with contextlib.suppress(Exception):  # nobody can read it
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
