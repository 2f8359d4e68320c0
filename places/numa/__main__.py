"""Run a command on a virtual machine with two NUMA nodes: ``python -m places.numa lscpu``.

The command sees the files of this machine; what the command writes does not stay. The exit code is
that of the command, or 3 if this machine cannot run such a virtual machine.
"""

import pathlib
import sys

from places.frame import Failed, Missing, scratch
from places.numa.machine import Machine
from places.numa.place import TWO_SOCKETS

LIMIT_S = 3600


def main():
    """Run the command on the command line; return the exit code."""
    try:
        with scratch("numa") as folder:
            machine = Machine(folder)
            done = machine.run(TWO_SOCKETS, *sys.argv[1:], within_s=LIMIT_S, cwd=pathlib.Path.cwd())
    except (Failed, Missing) as reason:
        print(reason)
        return 3
    print(done.output, end="")
    return done.code


if __name__ == "__main__":
    sys.exit(main())
