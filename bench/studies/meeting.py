"""The cost of many ranks on several nodes that meet over sockets, for rank 0 alone.

    python -m bench.studies meeting [-n 256 1024 4096] [--forked 512]

First, rank 0 is true: it attaches all ranks, finds their nodes and links their leaders. One other
process plays all other ranks. It shakes hands, and answers as ranks of eight nodes would, over true
sockets. Prints rank 0's processor time, the seconds that it takes, and the memory that rank 0 takes
for it. Over loopback its processor time has the kernel's work of the receiving end too.

Then so many ranks are true, forked from a process that has all kernels. They lie on eight pretended
nodes of this machine, and sum up their numbers.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import secrets
import socket
import time
import traceback
from collections.abc import Callable

import numpy as np
import psutil
from cobre_kernels.tcp import tags

from bench.report.text import number, table
from cobre_comm import TcpConfig, create_communicator
from cobre_comm.backends.fast_methods import load
from cobre_comm.backends.nodes.memory import BODIES
from cobre_comm.backends.nodes.node_order import HOST_BYTES, LIST_BYTES, name_nodes
from cobre_comm.backends.nodes.sharing import NOTHING, find_nodes
from cobre_comm.backends.shm.backend import BODIES as NODE_BODIES
from cobre_comm.backends.tcp.memory import VERBS
from cobre_comm.backends.tcp.process import this_process
from cobre_comm.backends.tcp.rendezvous import meet, messages
from cobre_comm.backends.tcp.rendezvous.event_loop import (
    NEVER,
    READ,
    Loop,
    Task,
    Wait,
    connect,
    send,
)
from cobre_comm.backends.tcp.rendezvous.handshake import (
    OWN_BYTE_ORDER,
    Handshake,
    handshake_as_connector,
)
from cobre_comm.backends.tcp.rendezvous.sockets import has_room, prepare
from cobre_comm.processes.port import ReservedPort
from cobre_comm.testing import run_ranks

NODES = 8
LIMIT_S = 600
HOST = "127.0.0.1"
TOKEN = secrets.token_hex(16)
AGAIN_S = 0.05
NAME = bytes(HOST_BYTES + 2 * LIST_BYTES)
Forked = multiprocessing.get_context("fork").Process


def main() -> None:
    parser = argparse.ArgumentParser(prog="meeting", description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, nargs="*", default=[256, 1024, 4096], dest="played")
    parser.add_argument("--forked", type=int, nargs="*", default=[512])
    arguments = parser.parse_args()
    rows = [[str(n), *(number(value) for value in played(n))] for n in arguments.played]
    words = ["processor s", "seconds", "MB more", "MB sent"]
    print(table(["ranks", *words], rows), flush=True)
    rows = [[str(n), *(number(value) for value in forked(n))] for n in arguments.forked]
    words = ["seconds", "processor s of rank 0", "PSS of a rank, MB", "descriptors of rank 0"]
    print(table(["forked ranks", *words], rows))


def config_of(rank: int, size: int, port: int) -> TcpConfig:
    """Return the configuration of a rank; the first ranks are on node 0, and so on."""
    return TcpConfig(
        rank=rank, size=size, coordinator=HOST, port=port, bind_addr=HOST, token=TOKEN,
        connect_timeout_ms=LIMIT_S * 1000, pretend_nodes=tuple(map(node_of(size), range(size))),
    )  # fmt: skip


def node_of(size: int) -> Callable[[int], int]:
    return lambda rank: rank * NODES // size


def told_by(body: Callable[..., object], *args: object) -> object:
    """Run a function in a forked process; return its value."""
    here, there = multiprocessing.Pipe(duplex=False)

    def run() -> None:
        there.send(body(*args))

    process = Forked(target=run)
    process.start()
    there.close()
    try:
        return here.recv()
    finally:
        process.join()


def played(size: int) -> tuple[float, float, float, float]:
    """Return what rank 0 takes to meet ranks that one other process plays."""
    with ReservedPort(HOST) as port:
        others = Forked(target=play, args=(size, port.port))
        others.start()
        told = told_by(be_rank_0, size, port.port)
        others.join()
    return told


def be_rank_0(size: int, port: int) -> tuple[float, float, float, float]:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, used = time.perf_counter(), time.process_time()
    sent = 0
    with meet(config_of(0, size, port)) as participant:
        order = find_nodes(participant, pretended=(0,))
        participant.agree(0)  # all have compiled
        participant.agree(order.lanes)
        participant.gather_rows(np.zeros(2, dtype=np.int64))
        name_nodes(participant, order)
        participant.start([order.leaders(lane).tolist() for lane in range(order.lanes)])
        took = time.perf_counter() - began, time.process_time() - used
    participant.links.close()
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    for part in parts_of(0, size):
        sent += (size - 1) * size * len(part)
    return *reversed(took), more / 1e3, sent / 1e6


def parts_of(rank: int, size: int) -> list[bytes]:
    """Return the parts that a rank gives in all exchanges but the last."""
    leader = -(-node_of(size)(rank) * size // NODES)
    found = np.array([leader], dtype=np.uint32).tobytes()
    compiled = lanes = np.ones(1, dtype=np.int64).tobytes()
    return [NOTHING.pack(), found, compiled, lanes, bytes(16), NAME]


def play(size: int, port: int) -> None:
    """Play all ranks but 0."""
    assert has_room(2 * size)
    ended: set[int] = set()
    loop, scratch = Loop(), memoryview(bytearray(2**16))

    def one(rank: int) -> Task[None]:
        yield from be_worker(rank, size, port, scratch)
        ended.add(rank)

    for rank in range(1, size):
        loop.start(one(rank))
    loop.run(lambda: len(ended) == size - 1, NEVER)


def be_worker(rank: int, size: int, port: int, scratch: memoryview) -> Task[None]:
    leaders = sorted({-(-node * size // NODES) for node in range(NODES)})
    control = yield from open_link(rank, size, port, tags.CONTROL, TOKEN.encode())
    job = messages.unpack_job((yield from messages.receive_frame(control, 0, messages.JOB)))
    for part in parts_of(rank, size):
        yield from send(control, messages.pack_checked(tags.PART, part))
        yield from skip_frame(control, size * len(part), scratch)
    yield from send(control, messages.pack_checked(tags.PART))
    yield from messages.receive_frame(control, 0, messages.peers(len(leaders) - 1))
    if rank in leaders:
        key = TOKEN.encode() + job.secret
        yield from open_link(rank, size, port, tags.DATA, key)
    yield from send(control, messages.pack_checked(tags.PART))
    yield from skip_frame(control, 0, scratch)


def open_link(rank: int, size: int, port: int, purpose: int, key: bytes) -> Task:
    """Connect to rank 0 once it listens, and shake hands."""

    def describe(loopback_only: bool) -> Handshake:
        return Handshake(
            rank, size, tags.PROTOCOL_VERSION, OWN_BYTE_ORDER, purpose, 0, port, this_process()
        )

    while True:
        sock = prepare(socket.socket())
        try:
            yield from connect(sock, (HOST, port), NEVER)
            break
        except OSError:
            sock.close()
            try:
                yield Wait(None, until=time.monotonic() + AGAIN_S)
            except TimeoutError:
                continue
    yield from handshake_as_connector(sock, describe, key, NEVER)
    return sock


def skip_frame(sock, nbytes: int, scratch: memoryview) -> Task[None]:
    """Receive a frame of checked parts, without keeping it: the other ranks have no memory here."""
    left = len(messages.pack_checked(tags.PARTS)) + nbytes
    while left > 0:
        try:
            count = sock.recv_into(scratch[: min(left, len(scratch))])
        except BlockingIOError:
            yield Wait(sock, READ)
            continue
        if count == 0:
            raise ConnectionError("rank 0 has ended")
        left -= count


def forked(size: int) -> tuple[float, float, float, float]:
    """Let forked ranks meet and sum up; return what that took."""
    return told_by(fork_ranks, size)


def fork_ranks(size: int) -> tuple[float, float, float, float]:
    warm()
    here, there = multiprocessing.Pipe(duplex=False)
    with ReservedPort(HOST) as port:
        began = time.perf_counter()
        children = []
        for rank in range(size):
            child = os.fork()
            if child == 0:
                be_rank(rank, size, port.port, there)
            children.append(child)
        there.close()
        used, descriptors, pss = here.recv()
        took = time.perf_counter() - began
        codes = [os.waitpid(child, 0)[1] for child in children]
    if any(codes):
        raise RuntimeError(f"{sum(map(bool, codes))} of {size} ranks have failed")
    return took, used, pss, descriptors


def warm() -> None:
    """Load all kernels, so that forked ranks share them."""
    run_ranks("tcp:0,0,1,1", 4, sum_up)
    load([*BODIES.all(), *NODE_BODIES.all(), *VERBS.all()])


def sum_up(comm) -> None:
    recv = np.zeros(1, dtype=np.int64)
    for times in range(3):
        comm.allreduce(np.array([comm.rank + times]), recv)
        assert recv[0] == comm.size * (comm.size - 1) // 2 + comm.size * times


def be_rank(rank: int, size: int, port: int, there) -> None:
    """Be a forked rank; does not return."""
    code = 1
    try:
        with create_communicator(config_of(rank, size, port)) as comm:
            sum_up(comm)
            assert len(comm.topology().ranks) == min(NODES, size)
            own = psutil.Process().memory_full_info().pss / 1e6
            pss = comm.sum(own) / size
            if rank == 0:
                there.send((time.process_time(), psutil.Process().num_fds(), pss))
            comm.barrier()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
