"""The command ``cobre-comm``."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Sequence

import cobre_comm
from cobre_comm.errors import did_you_mean
from cobre_comm.system.streams import write_error

COMMANDS = {
    "run": ("cobre_comm.run.command", "run a script or a module on several ranks"),
    "status": ("cobre_comm.status.command", "show what running jobs do, and who is waited for"),
    "explain": ("cobre_comm.explain", "say what causes an error or a mistake, and what cures it"),
    "check": ("cobre_comm.check.command", "prove that this machine computes what is promised"),
    "compile": ("cobre_comm.compile.command", "compile the kernels before any job waits for them"),
}
HELP = """\
usage: cobre-comm COMMAND [options]

Collective communication for numba programs: start ranks, look at them, check a machine.

commands:
{commands}
  --version  print the version

examples:
  cobre-comm run -n 4 train.py            # four ranks over shared memory
  cobre-comm run -n auto -m my_package    # as many ranks as cores
  cobre-comm status --watch               # what do my jobs do, and whom do they wait for?
  cobre-comm explain CollectiveFailed     # what causes this error, what cures it?
  cobre-comm explain prange               # a common mistake
  cobre-comm check --quick                # does this machine compute what is promised?
  cobre-comm COMMAND --help               # options and examples of a command
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status.

    If nobody reads the output any more, as with ``| head``, the command ends quietly.
    """
    try:
        status = _main(list(sys.argv[1:] if arguments is None else arguments))
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        # When Python ends, it writes what is left in the buffer of stdout. After dup2 these bytes
        # go to /dev/null.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    return status


def _main(words: list[str]) -> int:
    if words and words[0] in COMMANDS:
        module, _ = COMMANDS[words[0]]
        return int(importlib.import_module(module).main(words[1:]))
    if words in (["--version"], ["-V"]):
        print(f"cobre-comm {cobre_comm.__version__}")
        return 0
    if words in (["--help"], ["-h"]):
        lines = [f"  {name:9}  {what}" for name, (_, what) in COMMANDS.items()]
        print(HELP.format(commands="\n".join(lines)), end="")
        return 0
    write_error(f"cobre-comm: error: {_mistake(words)}")
    return 2


def _mistake(words: Sequence[str]) -> str:
    first = words[0] if words else ""
    if first.startswith("-n") or first.endswith(".py"):  # an argument of mpiexec, or of python
        ranks = "" if first.startswith("-n") else "-n 4 "
        return f"a command is missing; did you mean `cobre-comm run {ranks}{' '.join(words)}`?"
    what = f"unknown command {first!r}" if words else "a command is missing"
    return f"{what}; try `cobre-comm --help`{did_you_mean(first, COMMANDS)}"
