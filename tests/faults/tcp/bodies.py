"""Processes that meet as ranks of the tcp backend, where something is wrong."""

import logging
import os
import pathlib
import resource
import signal
import struct
import sys
import threading
import time

import numpy as np
from cobre_kernels.tcp import tags

from cobre_comm import InitializationFailed, create_communicator
from cobre_comm.backends.tcp.rendezvous import handshake, rendezvous, worker
from cobre_comm.config import TcpConfig
from cobre_comm.testing.conformance.bodies import sync
from tests.faults.tcp.clients import MAGIC, frame
from tests.faults.tcp.job import STAR_BYTES, check_greetings, descriptors, greet

OWN_BYTE_ORDER = int(sys.byteorder == "big")
MOST_ELEMENTS = 60_000  # through rank 0 and around the ring


def handshake_of_version(version):
    """A handshake of a version that knows more fields."""
    return frame(tags.HANDSHAKE, struct.pack(">IIH", 1, 2, version) + bytes(200))


def challenge_of_version(version):
    return frame(tags.CHALLENGE, struct.pack(">8sHB32s", MAGIC, version, 1, bytes(32)))


def attempt():
    """Return "met", or the error."""
    config = TcpConfig.from_env()
    try:
        links = rendezvous(config, STAR_BYTES)
    except InitializationFailed as error:
        return error
    greet(links, config.rank, config.size)
    check_greetings(links, config.rank, config.size)
    links.close()
    return "met"


class Log(logging.Handler):
    """Keeps what is logged."""

    def __init__(self):
        super().__init__()
        self.lines = []
        logging.getLogger("cobre_comm").addHandler(self)

    def emit(self, record):
        self.lines.append(record.getMessage())


def rank():
    return int(os.environ["COBRE_TCP_RANK"])


def meet(comm):
    return attempt()


def meet_when(comm, path, late_rank):
    """One rank comes when the file is there; return the result, the log and the memory taken."""
    log = Log()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if rank() == late_rank:
        wait_for(pathlib.Path(path))
    result = attempt()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return result, log.lines, after - before


def work_when(comm, folder, late_rank):
    """Meet while a flood comes, one rank late; work until it is over, and then once more."""
    folder, listen = pathlib.Path(folder), worker.Worker._listen

    def listen_and_tell(self, *arguments):
        listen(self, *arguments)
        tell(folder / f"port {rank()}", self._port())

    worker.Worker._listen = listen_and_tell
    if rank() == late_rank:
        wait_for(folder / "go")
    comm = create_communicator()
    tell(folder / f"began {rank()}", 1)
    is_over, rounds = np.zeros(1), 0
    while not is_over[0]:
        sync.random_operations(comm, "python", rounds, 10, MOST_ELEMENTS)
        is_over[0] = (folder / "over").exists()
        comm.broadcast(is_over, 0)
        rounds += 1
    sync.random_operations(comm, "njit", 1, 20, MOST_ELEMENTS)
    comm.close()
    return rounds


def tell(path, value):
    """Write a file that is there only when it is complete."""
    new = path.with_name(f"new {path.name}")
    new.write_text(str(value))
    new.rename(path)


def other_version(comm, path):
    """Process 1 is of another version; process 2 comes then as the same rank, of the right one."""
    process, refused = os.environ["PROCESS"], pathlib.Path(path)
    if process == "1":
        handshake.tags.PROTOCOL_VERSION = 2
    if process == "2":
        wait_for(refused)
    log = Log()
    result = attempt()
    if process == "1":
        refused.touch()
    return result, "\n".join(log.lines)


def is_killed(comm, victim, folder):
    """A rank is killed when it and those before the last have attached; the last one comes late."""
    folder = pathlib.Path(folder)
    serve = worker.Worker._serve_control

    def die():
        wait_for(folder / "1", folder / "2")
        (folder / "dying").touch()
        os.kill(os.getpid(), signal.SIGKILL)

    def attached(self, *arguments):
        (folder / str(rank())).touch()
        if rank() == victim:
            die()
        return serve(self, *arguments)

    worker.Worker._serve_control = attached
    if victim == rank() == 0:
        threading.Thread(target=die).start()
    if rank() == 3:
        wait_for(folder / "dying")
        os.environ["COBRE_TCP_CONNECT_TIMEOUT_MS"] = "300"
    return attempt()


def wait_for(*paths):
    while not all(path.exists() for path in paths):
        time.sleep(0.01)


def interrupted(comm, victim):
    """Ctrl-C on a rank that waits for one that never comes."""
    os.environ["COBRE_TCP_SIZE"] = "3"
    if rank() != victim:
        return attempt()
    sent = []

    def interrupt():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    before = len(descriptors())
    threading.Timer(1.5, interrupt).start()
    try:
        return attempt(), 99.0, 0
    except KeyboardInterrupt:
        waited_s = time.monotonic() - sent[0]
        return "KeyboardInterrupt", waited_s, len(descriptors()) - before


def few_descriptors(comm, path):
    """Rank 0 may open a hundred files more; the last rank comes late."""
    if rank() == 0:
        limit = len(descriptors()) + 100
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    return meet_when(comm, path, 2)[:2]


def too_few_descriptors(comm):
    os.environ["COBRE_TCP_SIZE"] = "40"
    limit = len(descriptors()) + 50
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    return attempt()
