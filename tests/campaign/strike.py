"""The strikes that only the campaign has, such as an uncaught exception, or a loss of memory."""

import json
import os
import resource
import signal
import threading
import time
from unittest import mock

import numba
import numpy as np

from cobre_comm import LocalBackend
from cobre_comm.testing.cases.collectives.float_modes import MODES, mode_of
from cobre_comm.testing.cases.faults.calling import collective
from tests.faults.odd import bytes_of_addresses, limited, no_descriptor_left, open_pipe
from tests.jit.parallel_loops import last_is_wrong


class Boom(Exception):
    """An exception that a rank's own code raises and does not catch."""


def raise_error(victim):
    victim.now()
    raise Boom("a fault of the rank's own")


class OddBoom(Exception):
    """An exception that cannot be compared: a comparison has no truth, as with arrays."""

    def __eq__(self, other):
        raise ValueError("the truth of a comparison is ambiguous")

    __hash__ = Exception.__hash__


def raise_odd_error(victim):
    victim.now()
    try:
        raise OddBoom("a fault of the rank's own")
    except OddBoom as error:
        raise error from OddBoom("its cause")


def change_float_mode(victim):
    """Compute in another floating-point mode from now on, as if a library had set it."""
    victim.now()
    if MODES:
        victim.taken.enter_context(mode_of([*MODES][victim.fault.seed % len(MODES)]))


def freeze_time(victim):
    """Stop the clocks of Python, as programs do in their tests."""
    victim.now()
    for name in ("time", "monotonic", "perf_counter"):
        for clock in (name, f"{name}_ns"):
            now = getattr(time, clock)()
            victim.taken.enter_context(mock.patch.object(time, clock, return_value=now))


def load_in_threads(victim):
    """Make the first calls that need machine code in several threads at once."""
    victim.now()
    threads = [threading.Thread(target=lambda: LocalBackend().barrier()) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def become_another_program(victim):
    victim.on_alarm(lambda *_: os.execvp("sleep", ["sleep", "0.5"]))


def die_early(victim):
    """Die before the ranks have met."""
    victim.now()
    signal.raise_signal(signal.SIGKILL)


def late_with_pipe(victim):
    """Be late, with a pipe open in /dev/shm: other programs may have pipes there."""
    with open_pipe():
        victim.late()


def speak(victim):
    """Write to a stdout that nobody reads."""
    victim.now()
    print("a line of the victim", flush=True)


def in_prange(victim):
    """Call with a wrong length in a parallel loop; the threads of the loop cannot raise."""
    # This threading layer has threads of its own, even if there is only one of them. The variable
    # has to be in the environment, because numba reads the variables again when it compiles.
    os.environ["NUMBA_THREADING_LAYER"] = "workqueue"
    numba.config.reload_config()
    last_is_wrong(victim.comm, np.ones((0, 3)))  # compiles
    victim.now()
    last_is_wrong(victim.comm, np.ones((8, 3)))


def astray(operation, length=5, **keywords):
    """Return a strike in which the victim makes another call than all other ranks."""

    def strike(victim):
        victim.now()
        collective(victim.comm, victim.fault.caller, operation, length, **keywords)

    return strike


def descriptors(victim):
    victim.now()
    os.closerange(3, 4096)


def no_descriptor(victim):
    """Leave the process no free descriptor; its account goes to a descriptor opened before."""
    victim.now()
    account = os.open(victim.ledger._path, os.O_WRONLY | os.O_APPEND)
    victim.taken.callback(os.close, account)
    victim.ledger.tell = lambda **facts: os.write(account, json.dumps(facts).encode() + b"\n")
    victim.taken.callback(victim.ledger.__dict__.pop, "tell")
    victim.taken.enter_context(no_descriptor_left())


def memory(victim):
    most = bytes_of_addresses(victim.fault.delay_s * 2**30)
    victim.now()
    victim.taken.enter_context(limited(resource.RLIMIT_AS, most))
