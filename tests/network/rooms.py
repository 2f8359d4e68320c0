"""Namespaces that make processes of this machine look like processes of another machine.

A *room* has its own /dev/shm, process numbers with their /proc, host name and System V memory. One
process in the room, `cat`, keeps the room: it ends as soon as the process that made the room has
ended, in whatever way. Then the kernel kills everything in the room, and unmounts what was mounted
there.
"""

import contextlib
import ctypes
import os
import pathlib
import subprocess

CLONE_FS = 0x00000200
CLONE_NEWNET = 0x40000000
# The order is that in which a thread enters namespaces. A PID namespace is entered by the thread's
# children alone.
KINDS = {
    "net": CLONE_NEWNET,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "pid_for_children": 0x20000000,
    "mnt": 0x00020000,
}
# While a thread has no children, its `pid_for_children` may lead nowhere, unlike its `pid`.
OWN = {"pid_for_children": "pid"}
KEEP = """mount -t tmpfs -o mode=1777 shm /dev/shm &&
echo "$0" > /proc/sys/kernel/hostname && echo kept && exec cat"""
# The process prints its number and becomes the keeper; then a child of the keeper prints "kept".
BECOME = """echo $$ &&
exec unshare --mount --pid --fork --mount-proc --uts --ipc sh -c "$1" "$0"
"""
# The shell ends immediately: nobody waits for the keeper, which ends last.
MAKE = """exec 3<&0
sh -c "$2" "$0" "$1" <&3 3<&- &"""
_libc = ctypes.CDLL(None, use_errno=True)


def _check(result, doing):
    if result:
        raise OSError(ctypes.get_errno(), f"cannot {doing}: {os.strerror(ctypes.get_errno())}")


@contextlib.contextmanager
def entered(paths):
    """Put this thread, and the processes that it starts, into namespaces for a while.

    ``paths`` has the path of each of these namespaces, by its kind, which is one of ``KINDS``.
    """
    own = pathlib.Path("/proc/thread-self/ns")
    folder = pathlib.Path.cwd()
    with contextlib.ExitStack() as stack:
        home = {kind: stack.enter_context((own / OWN.get(kind, kind)).open()) for kind in paths}
        there = {kind: stack.enter_context(path.open()) for kind, path in paths.items()}
        if "mnt" in paths:
            _check(_libc.unshare(CLONE_FS), "have a folder of this thread's own")
        _enter(there, folder)
        try:
            yield
        finally:
            _enter(home, folder)


def _enter(files, folder):
    for kind in KINDS:
        if kind in files:
            _check(_libc.setns(files[kind].fileno(), KINDS[kind]), f"enter {files[kind].name}")
    os.chdir(folder)  # a thread that enters other mounts is in the root folder of these mounts


class Room:
    """All namespaces of a host except its network; they last until the room is closed.

    The constructor raises ``OSError`` if this user may not have namespaces.
    """

    def __init__(self, name, network):
        with entered({"net": network}), subprocess.Popen(
            ["sh", "-c", MAKE, name, KEEP, BECOME], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True,
        ) as shell:  # fmt: skip
            keeper = shell.stdout.readline().strip()
            if shell.stdout.readline() != "kept\n":
                shell.stdin.close()
                raise OSError(f"no namespaces for a host: {shell.stderr.read().strip()}")
            self._keeping, shell.stdin = shell.stdin, None
        namespaces = pathlib.Path(f"/proc/{keeper}/ns")
        self._paths = {kind: namespaces / kind for kind in KINDS}

    def inside(self):
        """Return a context in which processes are started in the room."""
        return entered(self._paths)

    @property
    def command(self):
        """The words that, before a command, run the command in the room."""
        options = {
            "net": "net",
            "uts": "uts",
            "ipc": "ipc",
            "pid_for_children": "pid",
            "mnt": "mount",
        }
        chosen = [f"--{options[kind]}={path}" for kind, path in self._paths.items()]
        return ["nsenter", *chosen, f"--wdns={pathlib.Path.cwd()}", "--"]

    def close(self):
        """End all processes in the room."""
        self._keeping.close()
