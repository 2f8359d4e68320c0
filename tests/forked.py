"""Forks of this process, ranks that are forks, and a signal that strikes at a chosen call.

A fork has all modules of this process, and may have a /dev/shm of its own. A job of forked ranks
takes milliseconds, because the kernels are loaded already.
"""

import atexit
import contextlib
import ctypes
import functools
import importlib
import inspect
import itertools
import math
import os
import pickle
import select
import signal
import sys
import time
import traceback
import warnings
from types import MappingProxyType

import pytest
from cobre_kernels.collective.calls import OPERATIONS
from cobre_kernels.collective.entry import ENTRIES

from cobre_comm import create_communicator
from cobre_comm.reports.report_pipe import exit_code_of
from cobre_comm.testing import Outcome, run_ranks_outcomes
from cobre_comm.testing.backend_name import BackendName
from cobre_comm.testing.ranks.compile_once import once_in_all_ranks
from cobre_comm.testing.ranks.outcome import values_of
from cobre_comm.testing.ranks.surroundings import (
    inherited_environment,
    rank_environment,
    scaled_limit,
)

CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18
PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def make_private_memory(size):
    """Mount a private /dev/shm; return "", or the reason why it cannot be mounted."""
    if _libc.unshare(CLONE_NEWNS) or _libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None):
        return f"no private mount namespace: {os.strerror(ctypes.get_errno())}"
    if _libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, f"size={size}".encode()):
        return f"cannot mount /dev/shm: {os.strerror(ctypes.get_errno())}"
    return ""


def start(act):
    """Start a process that calls a function; what the function returns is its exit code."""
    # Python warns of a fork while threads run, but the threads of pytest-xdist only wait.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            die_with_parent()
            code = act() or 0
        finally:
            os._exit(code)
    return pid


def become_alone(stdin, stdout, stderr, kept=()):
    """Leave the session of the parent process, and give up the parent's handler of Ctrl-C.

    Only these descriptors stay open: the three arguments, as 0, 1 and 2, and those in ``kept``.
    """
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, descriptor in enumerate((stdin, stdout, stderr)):
        os.dup2(descriptor, number)
    begin = 3
    for number in (*sorted(kept), os.sysconf("SC_OPEN_MAX")):
        os.closerange(begin, number)
        begin = number + 1


def exit_code(act):
    """Call a function, then Python's exit functions; return what an interpreter would exit with."""
    code = 0
    try:
        act()
    except SystemExit as error:
        code = exit_code_of(error)
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def fork(act, *args):
    """Start a process that calls a function; return its pid, and a pipe for the result."""
    reader, writer = os.pipe()

    def tell():
        try:
            found = act(*args)
        except Exception as error:
            error.add_note(traceback.format_exc())
            found = error
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(pickle.dumps(found))

    pid = start(tell)
    os.close(writer)
    return pid, reader


def outcome(pid, reader, within_s=None):
    """Return the value or exception that a process sends, else its exit code."""
    with os.fdopen(reader, "rb") as pipe:
        hangs = not select.select([pipe], [], [], within_s)[0]
        if hangs:
            os.kill(pid, signal.SIGKILL)
        found = pipe.read()
    _, status = os.waitpid(pid, 0)
    if hangs:
        return TimeoutError("it was busy at the deadline")
    return pickle.loads(found) if found else os.waitstatus_to_exitcode(status)


@functools.cache
def load():
    """Load the modules of a rank over shared memory or sockets, so that a fork has them already."""
    for module in ("cobre_comm.backends.shm.backend", "cobre_comm.backends.tcp.backend"):
        importlib.import_module(module)
    for home, operation in itertools.product(("shm", "nodes"), ENTRIES):
        importlib.import_module(f"cobre_kernels.{home}.{OPERATIONS[operation]}")


def ranks(backend, size, body, *args, env=MappingProxyType({}), timeout_s=60.0, connect=True):
    """Run ``body(comm, *args)`` on forked ranks; return the outcome of each rank.

    Use it in tests that end ranks or need new ranks, and that do not try how ranks start.
    mpiexec cannot start forks, so the ranks of an MPI are started by ``run_ranks_outcomes``.
    """
    if BackendName.parse(backend).is_mpi:
        limits = {"env": env, "timeout_s": timeout_s, "connect": connect}
        return run_ranks_outcomes(backend, size, body, *args, **limits)

    load()

    def be(rank, environment):
        inherited = inherited_environment()
        os.environ.clear()
        os.environ.update({**inherited, **environment, **env})
        once_in_all_ranks()
        try:
            with create_communicator() if connect else contextlib.nullcontext() as comm:
                return Outcome(rank, value=body(comm, *args))
        except Exception as error:
            return Outcome(rank, exception=error, traceback=traceback.format_exc())

    until = time.monotonic() + scaled_limit(timeout_s)
    started = [fork(be, *each) for each in enumerate(rank_environment(backend, size))]
    ends = [outcome(*each, max(0.0, until - time.monotonic())) for each in started]
    return [_outcome_of(rank, end) for rank, end in enumerate(ends)]


def on_forks(size, *backends, killed=0, **limits):
    """Run a test on forked ranks; the mark ``ranks`` would run it on new processes.

    Each argument means what it means for the mark. Fixtures are made before ranks are forked.
    """

    def decorate(test):
        @functools.wraps(test)
        def on_each(forked_over, **values):
            outcomes = ranks(forked_over, size, lambda comm: test(comm, **values), **limits)
            lost = [each for each in outcomes if each.exit_code == -signal.SIGKILL]
            values_of([each for each in outcomes if each not in lost])
            assert len(lost) == killed, lost

        taken = inspect.signature(test).parameters.values()
        backend = inspect.Parameter("forked_over", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        others = [each for each in taken if each.name != "comm"]
        on_each.__signature__ = inspect.Signature([backend, *others])
        return pytest.mark.parametrize("forked_over", backends or ["shm"])(on_each)

    return decorate


def _outcome_of(rank, end):
    if isinstance(end, Outcome):
        return end
    if isinstance(end, TimeoutError):
        return Outcome(rank, timed_out=True)
    return Outcome(rank, ended=True, exit_code=end)


def each(act, items, workers, within_s=math.inf):
    """Call a function with each item in a process of its own; yield each item and its outcome.

    If a process crashes or hangs, only the item of this process has no result.
    """
    waiting, running = iter(items), {}
    while True:
        for item in itertools.islice(waiting, workers - len(running)):
            pid, reader = fork(act, item)
            running[reader] = item, pid, time.monotonic() + within_s
        if not running:
            return
        ready, _, _ = select.select([*running], [], [], 1.0)
        late = [reader for reader, (*_, until) in running.items() if time.monotonic() > until]
        for reader in {*ready, *late}:
            item, pid, _ = running.pop(reader)
            yield item, outcome(pid, reader, None if reader in ready else 0.0)


def in_private_shm(size, act, *args):
    """Call a function in a process that has an empty /dev/shm of that size; return its value."""

    def alone():
        why_not = make_private_memory(size)
        return why_not, None if why_not else act(*args)

    found = outcome(*fork(alone))
    if isinstance(found, Exception):
        raise found
    why_not, value = found
    if why_not:
        pytest.skip(why_not)
    return value


@contextlib.contextmanager
def struck_at(moment, number):
    """Send this process the signal ``number`` at its n-th call, where n is ``moment``.

    Yields a list that gets an entry for each call.
    """
    calls = []

    def count(frame, event, argument):
        if event in ("call", "c_call"):
            calls.append(None)
            if len(calls) == moment:
                signal.raise_signal(number)

    if moment is not None:
        sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)
