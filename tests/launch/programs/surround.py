"""Make the surroundings NAME, and become a command in them: ``surround.py NAME COMMAND...``."""

import os
import pty
import resource
import signal
import sys

SIGNALS = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}


def ignore(*numbers):
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


def close(*descriptors):
    for descriptor in descriptors:
        os.close(descriptor)


def broken():
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def leave_directory():
    import tempfile  # only here, because tempfile takes longer to import than all other modules

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)


def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (48, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def go_to_background():
    """Continue as a child in the background of the terminal on stdin; parents await the child."""
    output = [os.dup(1), os.dup(2)]
    leader, _ = pty.fork()
    child = os.fork() if leader == 0 else leader
    if child == 0:
        os.setpgid(0, 0)
        for number, descriptor in enumerate(output, 1):
            os.dup2(descriptor, number)
            os.close(descriptor)
        return
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) % 256)


SURROUNDINGS = {
    "usual": lambda: None,
    "SIGCHLD blocked": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD}),
    "SIGCHLD ignored": lambda: ignore(signal.SIGCHLD),
    "SIGTERM blocked": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM}),
    "SIGINT and SIGHUP ignored": lambda: ignore(signal.SIGINT, signal.SIGHUP),
    "all signals blocked": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS),
    "no stdin": lambda: close(0),
    "no stdout": lambda: close(1),
    "no stderr": lambda: close(2),
    "no standard stream": lambda: close(0, 1, 2),
    "stderr is full": lambda: os.dup2(os.open("/dev/full", os.O_WRONLY), 2),
    "nobody reads stderr": lambda: os.dup2(broken(), 2),
    "few open files": few_files,
    "no directory": leave_directory,
    "background": go_to_background,
    "no terminal": os.setsid,
}

if __name__ == "__main__":
    SURROUNDINGS[sys.argv[1]]()
    os.execv(sys.argv[2], sys.argv[2:])
