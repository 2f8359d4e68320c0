"""New interpreters: their command lines, and how they are started and tied to this process."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cobre_comm.processes import exec_shim

MOST_PAGES = 2**16  # of 4 KiB; a fork copies the page table, and a system may refuse a larger one


def interpreter_command() -> list[str]:
    """Return this interpreter with its own flags, ``-W`` and ``-X`` options.

    ``ValueError`` is raised if this program does not know its interpreter.
    """
    if not sys.executable:
        raise ValueError(
            "sys.executable is empty, so no rank can be started: this Python is part of another "
            "program, or was started by a name that is not on PATH; set sys.executable to the "
            "path of the python that ranks shall run in"
        )
    # multiprocessing uses this function too. The function knows sys.flags and -W, but not every -X.
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    for name, value in sys._xoptions.items():
        option = name if value is True else f"{name}={value}"
        if option not in flags:
            flags += ["-X", option]
    return [sys.executable, *flags]


def calling(module: str) -> list[str]:
    """Return arguments by which an interpreter calls ``main`` of a module, with this ``sys.path``.

    With a ``sys.path`` of its own, the interpreter would first look into the current folder, where
    a file of the user's may have the name of any module. Entries of ``sys.path`` that are no text
    are left out, because Python ignores them.
    """
    path = [str(entry) for entry in sys.path if isinstance(entry, str)]
    code = f"import sys; sys.path[:] = {path!r}; from {module} import main; sys.exit(main())"
    return ["-c", code]


def start(command: Sequence[str], cpus: Sequence[int], **options: Any) -> subprocess.Popen[bytes]:
    """Start ``command``, tied to this process and bound to CPUs, with options of ``Popen``."""
    if not _forks_well():
        return subprocess.Popen(tied_command(command, cpus), **options)
    # Until the child has become the command, it has the launcher's handlers, so signals have to
    # wait.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        prepare = functools.partial(exec_shim.prepare_or_exit, os.getpid(), list(cpus), before)
        return subprocess.Popen(command, preexec_fn=prepare, **options)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _forks_well() -> bool:
    """Whether a fork is safe and cheap: this process has one thread, and little memory."""
    if sys.platform != "linux":
        return False
    try:
        threads = os.listdir("/proc/self/task")  # noqa: PTH208  # only the names are needed
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:  # /proc is not mounted
        return False
    return len(threads) == 1 and pages < MOST_PAGES


def tied_command(command: Sequence[str], cpus: Sequence[int]) -> list[str]:
    """Return ``command`` behind the shim, which ties it to this process and binds it to CPUs.

    If another thread than the first one starts the command, the command is not tied, because Linux
    would kill it when that thread ends. In this case only the guardian can end the command after
    the launcher was killed.
    """
    is_first = threading.get_native_id() == os.getpid()
    parent = str(os.getpid()) if is_first else exec_shim.UNTIED
    shim = [sys.executable, "-I", "-S", exec_shim.__file__, parent]
    return [*shim, ",".join(map(str, cpus)) or exec_shim.UNBOUND, *command]
