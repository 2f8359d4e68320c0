"""What ranks do where sockets take little at a time."""

import contextlib
import os
import pathlib
import random
import signal
import socket
import threading
import time

from cobre_kernels.tcp import chain, ring

from cobre_comm import ReduceOp
from cobre_comm.backends.tcp import backend
from cobre_comm.testing.cases.collectives import allgatherv, allreduce, broadcast
from cobre_comm.testing.cases.faults import calling
from cobre_comm.testing.cases.mixed import sequences
from cobre_comm.testing.cases.raised import raises

RECEIVE_BYTES = 65536
LATEST_S = 20.0  # when a late rank comes at the latest


def tighten(comm):
    """Let sockets take little: the least to send, and of what comes a bit.

    With less to receive, a full window opens only when TCP probes it, five times a second.
    """
    for sock in comm._links.data.values():
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
    comm.barrier()


def work(comm, seed, count):
    """Random collectives, each verified, some of a MiB: more than a chunk and than a buffer."""
    tighten(comm)
    sequences.random_operations(comm, "either", seed, count, 150_000)


class Trickle:
    """Puts a pump into every link, which passes on a few bytes at a time."""

    def __init__(self, comm, seed, pause_s=0.0):
        self._draw, self._pause_s, self._stop = random.Random(seed), pause_s, False
        self._kept, self._ours, self._threads = [], [], []
        sockets, links = comm._links, comm._comm.links
        for rank in sockets.data:
            links.peers[rank].data_fd = self._pump(sockets.data[rank])
            links.peers[rank].control_fd = self._pump(sockets.control[rank])

    def _pump(self, link):
        """Return the descriptor of the near end."""
        near, far = socket.socketpair()
        near.setblocking(False)
        link.setblocking(True)
        self._kept += [near, far]
        self._ours.append(near)
        for source, target in ((far, link), (link, far)):
            thread = threading.Thread(target=self._pass_on, args=(source, target), daemon=True)
            self._threads.append(thread)
            thread.start()
        return near.fileno()

    def _pass_on(self, source, target):
        with contextlib.suppress(OSError):
            while octets := source.recv(self._draw.randrange(1, 30)):
                target.sendall(octets)
                time.sleep(0.0 if self._stop else self._pause_s)
            target.shutdown(socket.SHUT_WR)

    def close(self, comm):
        """Take the pumps away, and close the communicator."""
        self._stop = True
        for sock in self._ours:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10.0)
            assert not thread.is_alive()
        comm.close()
        for sock in self._kept:
            sock.close()


def work_by_bytes(comm, seed, count):
    """All collectives over links that pass on a few bytes at a time."""
    trickle = Trickle(comm, seed)
    sequences.random_operations(comm, "either", seed, count, 150)
    comm.barrier()
    time.sleep(0.3)  # until the pumps are empty
    trickle.close(comm)


def failure_report_by_bytes(comm, seed):
    """A disagreement is reported over such links too."""
    trickle = Trickle(comm, seed)
    comm.barrier()
    caught, *_ = calling.meet_failure(comm, "python", "allreduce", length=5 + comm.rank % 2)
    time.sleep(0.5)  # until all ranks have read the failure report
    trickle.close(comm)
    return str(caught)


def small_frames(comm, frame_bytes):
    """Many frames and chunks of a payload; without compilation constants can be other ones."""
    ring.FRAME_BYTES = frame_bytes
    chain.SMALLEST_CHUNK, chain.CHUNK_BYTES = 128, 256
    allgatherv.gather_every_layout(comm, "python")
    few = (1, 15, 16, 17, 31, 32, 33, 128, 129)
    for length in few if frame_bytes == 1 else (*few, 1000):
        allreduce.reduce(comm, "python", "f8", ReduceOp.SUM, length)
        allreduce.reduce_in_place(comm, "python", "f8", ReduceOp.MIN, length)
        broadcast.cast(comm, "python", "f4", length, length % comm.size)


def disagree(comm, caller, length):
    """Payloads that no buffer of a socket holds, of another length on the last rank."""
    tighten(comm)
    began = time.monotonic()
    length += comm.rank == comm.size - 1
    caught, at, _, _ = calling.meet_failure(comm, caller, "allreduce", length=length)
    return caught, at - began


def interrupted_while_bytes_come(comm, caller, length, pause_s):
    """Ctrl-C on rank 1 in the middle of a transfer over links so slow that bytes always come.

    Another thread takes the signal, so that no system call of this one is interrupted.
    """
    for operation in calling.OPERATIONS:
        calling.collective(comm, caller, operation)
    trickle = Trickle(comm, 1, pause_s=0.001)
    sent = []

    def interrupt():
        time.sleep(pause_s)
        sent.append(time.monotonic())
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    if comm.rank == 1:
        threading.Thread(target=interrupt).start()
    caught, at, _, _ = calling.meet_failure(comm, caller, "broadcast", length=length)
    time.sleep(0.5)  # until all ranks have read the failure report
    trickle.close(comm)
    return caught, at - sent[0] if sent else 0.0


def gone_before_the_next(comm, how, path):
    """Rank 2 goes, rank 1 learns of it as its next step begins, rank 0 comes only after that.

    Rank 0 returns whether rank 1 had met its error by then, rank 1 the error.
    """
    comm.barrier()
    if comm.rank == 2 and how == "close":
        comm.close()
    if comm.rank == 2 and how == "interrupt":
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        with contextlib.suppress(KeyboardInterrupt):
            comm.barrier()
    if comm.rank == 2:
        return None
    path = pathlib.Path(path)
    if comm.rank == 0:
        until = time.monotonic() + LATEST_S
        while not path.exists() and time.monotonic() < until:
            time.sleep(0.01)
        return path.exists()
    time.sleep(0.6)  # until rank 2 has gone
    comm._comm.links.swept = -1000  # the step begins with reading all control messages
    caught, *_ = calling.meet_failure(comm, "python", "barrier")
    path.touch()
    return caught


def no_memory(comm):
    """The inboxes do not fit: an error, the links are closed, and nothing crashes."""
    from cobre_comm import InitializationFailed, create_communicator

    def refuse(*arguments):
        raise MemoryError("no room")

    backend.link_record = refuse
    return str(raises(InitializationFailed, create_communicator))
