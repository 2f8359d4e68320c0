"""Processes that meet as ranks of the tcp backend while something is wrong."""

import contextlib
import gc
import logging
import os
import pathlib
import resource
import signal
import subprocess
import threading
import time

from cobre_comm import InitializationFailed, TcpBackend, objects
from cobre_comm.backends.shm import nameless, segment
from cobre_comm.backends.tcp import backend, nodes
from cobre_comm.backends.tcp.rendezvous import worker
from cobre_comm.config import TcpConfig
from cobre_comm.testing.cases.raised import raises
from tests.faults.tcp.job import check_greetings, descriptors, greet, rendezvous

LATE_S = 4.0


class Log(logging.Handler):
    """Keeps what is logged."""

    def __init__(self):
        super().__init__()
        self.lines = []
        logging.getLogger("cobre_comm").addHandler(self)

    def emit(self, record):
        self.lines.append(record.getMessage())


def tell(path, value=""):
    """Write a file that is there only when it is complete."""
    new = path.with_name(f"new {path.name}")
    new.write_text(str(value))
    new.rename(path)


def wait_for(*paths):
    while not all(path.exists() for path in paths):
        time.sleep(0.01)


def rank():
    return int(os.environ["COBRE_TCP_RANK"])


def meet(comm):
    """Return "met", or the error."""
    config = TcpConfig.from_env()
    try:
        links = rendezvous(config)
    except InitializationFailed as error:
        return error
    greet(links, config.rank)
    check_greetings(links, config.rank)
    links.close()
    return "met"


def few_descriptors(comm, path):
    """Rank 0 may open a hundred files more; the last rank comes late. Return result and log."""
    log = Log()
    if rank() == 0:
        limit = len(descriptors()) + 100
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    if rank() == 2:
        wait_for(pathlib.Path(path))
    return meet(comm), log.lines


def too_few_descriptors(comm):
    os.environ["COBRE_TCP_SIZE"] = "40"
    limit = len(descriptors()) + 50
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    return meet(comm)


def exchange_objects(comm):
    """Return what each function of pickles raises; nothing is sent, so the ranks need not meet."""
    calls = objects.broadcast, objects.gather, objects.allgather
    refusals = [str(raises(PermissionError, call, comm, {})) for call in calls]
    comm.barrier()
    return refusals


def _tell_when_attached(folder, then=lambda: None):
    """Let a worker write a file, and do something, as soon as rank 0 has accepted it."""
    control = worker.Worker._open_control

    def attached(self):
        found = control(self)
        tell(folder / str(rank()))
        then()
        return found

    worker.Worker._open_control = attached


def is_killed(comm, victim, folder):
    """A rank is killed when it and those before the last have attached; the last one is late."""
    folder = pathlib.Path(folder)

    def die():
        wait_for(folder / "1", folder / "2")
        tell(folder / "dying")
        os.kill(os.getpid(), signal.SIGKILL)

    _tell_when_attached(folder, die if rank() == victim else lambda: None)
    if victim == rank() == 0:
        threading.Thread(target=die).start()
    if rank() == 3:
        wait_for(folder / "dying")
        os.environ["COBRE_TCP_CONNECT_TIMEOUT_MS"] = "300"
    return meet(comm)


def interrupted(comm, victim, folder):
    """Ctrl-C on a rank that waits for one that never comes; return how long it still waited."""
    os.environ["COBRE_TCP_SIZE"] = "3"
    folder, sent_at, before = pathlib.Path(folder), [], len(descriptors())

    def interrupt():
        wait_for(folder / "1")
        sent_at.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    _tell_when_attached(folder)
    thread = threading.Thread(target=interrupt)
    if rank() == victim:
        thread.start()
    with contextlib.suppress(KeyboardInterrupt):
        return meet(comm)
    return time.monotonic() - sent_at[0], len(descriptors()) - before


def suspended(comm, folder):
    """Rank 1 is stopped for longer than its limit, while it looks for rank 0."""
    resumed = pathlib.Path(folder) / "resumed"
    if rank() == 0:
        wait_for(resumed)
        return meet(comm)
    pid = os.getpid()
    command = f"sleep 0.3; kill -STOP {pid}; sleep 2.5; kill -CONT {pid}; touch {resumed}"
    with subprocess.Popen(["sh", "-c", command]):
        return meet(comm)


def without_shared_memory(comm, how):
    """Meet where no file may grow, or none can be made in /dev/shm; return a sum, or the error."""

    def refuse(*_):
        raise OSError("no /dev/shm here")

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    if how == "full":
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    else:
        nameless.SHM_FOLDER, segment.create_named = pathlib.Path("/nowhere"), refuse
    try:
        with TcpBackend(TcpConfig.from_env()) as made:
            return made.sum(made.rank)
    except InitializationFailed as error:
        return str(error)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def struck_while_sharing(comm, victim, moment, how):
    """One rank is struck after the ranks have attached; return the error, and what it left open."""
    owner = {"confirmed": nodes, "attach_group": backend, "_share": TcpBackend}[moment]
    genuine, before = getattr(owner, moment), len(descriptors())

    def strike(*arguments):
        found = genuine(*arguments) if moment == "_share" else None
        if how == "late":
            time.sleep(LATE_S)
        else:
            os.kill(os.getpid(), signal.SIGKILL if how == "killed" else signal.SIGINT)
        return found or genuine(*arguments)

    if rank() == victim:
        setattr(owner, moment, strike)
    try:
        TcpBackend(TcpConfig.from_env()).close()
        result = "met"
    except (InitializationFailed, KeyboardInterrupt) as error:
        result = str(error)
    gc.collect()
    return result, len(descriptors()) - before
