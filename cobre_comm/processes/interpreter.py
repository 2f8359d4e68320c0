"""Command lines of new interpreters: like this one, and tied to this process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence

from cobre_comm.processes import exec_shim


def interpreter_command() -> list[str]:
    """Return this interpreter with its own flags, ``-W`` and ``-X`` options."""
    # As multiprocessing does; it knows sys.flags and -W, but not every -X.
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    for name, value in sys._xoptions.items():
        option = name if value is True else f"{name}={value}"
        if option not in flags:
            flags += ["-X", option]
    return [sys.executable, *flags]


def tied_command(command: Sequence[str], cpus: Sequence[int]) -> list[str]:
    """Return ``command`` behind the shim, which ties it to this process and binds it to CPUs.

    What another thread than the first one starts is left to the guardian, because Linux would end
    it together with its thread.
    """
    is_first = threading.get_native_id() == os.getpid()
    parent = str(os.getpid()) if is_first else exec_shim.UNTIED
    shim = [sys.executable, "-I", "-S", exec_shim.__file__, parent]
    return [*shim, ",".join(map(str, cpus)) or exec_shim.UNBOUND, *command]
