"""Strikes that the campaign alone has, such as an uncaught exception, or a loss of memory."""

import contextlib
import json
import os
import pathlib
import resource
import signal

import numba
import numpy as np

from cobre_comm.testing.cases.faults.strike import Victim
from tests.jit.parallel_loops import last_is_wrong


class Boom(Exception):
    """An exception that a rank's own code raises and does not catch."""


class OddVictim(Victim):
    """A rank that a fault of the campaign strikes."""

    def __init__(self, *rest):
        super().__init__(*rest)
        self._taken = contextlib.ExitStack()  # what others then lack

    def end(self):
        """Give the victim back what it has lost, too."""
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        self._taken.close()
        super().end()

    def raise_error(self):
        self.now()
        raise Boom("a fault of the rank's own")

    def exec(self):
        self._on_alarm(lambda *_: os.execvp("sleep", ["sleep", "0.5"]))

    def die_early(self):
        """Die before the ranks have met."""
        self.now()
        signal.raise_signal(signal.SIGKILL)

    def late_with_pipe(self):
        """Be late with a pipe open that lies in /dev/shm, as programs of others have them."""
        pipe = pathlib.Path(f"/dev/shm/pipe-{os.getpid()}")
        os.mkfifo(pipe)
        self._hold(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
        pipe.unlink()
        self.late()

    def speak(self):
        """Write to a stdout that nobody reads."""
        self.now()
        print("a line of the victim", flush=True)

    def wait_outside(self):
        """Note the moment for the process outside, which strikes when it reads the account."""
        self.now()

    def in_prange(self):
        """Call with a wrong length in a parallel loop, whose threads cannot raise."""
        # It has threads of its own, also of one. A compilation reads the variables again.
        os.environ["NUMBA_THREADING_LAYER"] = "workqueue"
        numba.config.reload_config()
        last_is_wrong(self.comm, np.ones((0, 3)))  # compiles
        self.now()
        last_is_wrong(self.comm, np.ones((8, 3)))

    # Less of what it has.
    def descriptors(self):
        self.now()
        os.closerange(3, 4096)

    def no_descriptor(self):
        """Open as many as the process may have; its account goes on by one of them."""
        self.now()
        account = os.open(self.ledger._path, os.O_WRONLY | os.O_APPEND)
        self._hold(account)
        self.ledger.tell = lambda **facts: os.write(account, json.dumps(facts).encode() + b"\n")
        self._taken.callback(self.ledger.__dict__.pop, "tell")
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._taken.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        resource.setrlimit(resource.RLIMIT_NOFILE, (account + 8, limits[1]))
        with contextlib.suppress(OSError):
            while True:
                self._hold(os.open(os.devnull, os.O_RDONLY))

    def _hold(self, descriptor):
        self._taken.callback(os.close, descriptor)

    def memory(self):
        pages = int(open("/proc/self/statm").read().split()[0])  # noqa: PTH123, SIM115
        limit = pages * os.sysconf("SC_PAGESIZE") + int(self.fault.delay_s * 2**30)
        self.now()
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
