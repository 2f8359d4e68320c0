"""Roll calls where a rank cannot be reached, or is one call behind: no rank continues alone."""

import os
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from cobre_comm import CollectiveFailed, TcpConfig
from cobre_comm.backends.tcp.callers import Callers
from cobre_comm.backends.tcp.council import TcpCouncil
from cobre_comm.backends.tcp.rendezvous import messages
from cobre_comm.backends.tcp.rendezvous.addresses import Endpoint
from cobre_comm.backends.tcp.survivors import GOES_ON, Answer

SIZE = 3


@pytest.fixture
def councils():
    """Return the council of each rank; all these ranks are in this process."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(SIZE)]
    for listener in listeners:
        listener.setblocking(False)
    ports = {r: Endpoint(one.family, one.getsockname()) for r, one in enumerate(listeners)}
    common = {"size": SIZE, "timeout_s": 1.0, "coordinator": "127.0.0.1:1"}
    configs = [TcpConfig(rank=r, **common) for r in range(SIZE)]
    made = [TcpCouncil(c, Callers(listeners[c.rank], ports, b"key")) for c in configs]
    yield made
    for listener in listeners:
        listener.close()


def assemble(councils):
    """Let each council call the roll in a thread, then leave; return members or errors by rank."""

    def call(council):
        try:
            return council.rank, council.assemble()
        except CollectiveFailed as error:
            return council.rank, str(error)
        finally:
            council.leave()

    with ThreadPoolExecutor(len(councils)) as threads:
        return dict(threads.map(call, councils))


def has_open_port(council):
    """Tell whether the port of a rank is open; an open port says that the rank may still arrive."""
    with socket.socket() as caller:
        return caller.connect_ex(council.callers.endpoints[council.rank].sockaddr) == 0


def test_a_port_that_the_program_has_closed_is_no_error():
    listener = socket.create_server(("127.0.0.1", 0))
    os.close(listener.fileno())
    Callers(listener, {}, b"").close()


@pytest.fixture
def ports_of(councils):
    """Return a function that tells which ports are open; after the test, close the open ports."""
    numbers = [council.callers.listener.fileno() for council in councils]

    def ask():
        return [has_open_port(council) for council in councils]

    yield ask
    for council, number in zip(councils, numbers, strict=True):
        if council.callers.listener.fileno() < 0 and has_open_port(council):
            socket.close(number)


@pytest.mark.parametrize("is_unreachable", [False, True])
def test_ports_stay_open_for_a_rank_that_may_come_back(councils, ports_of, is_unreachable):
    if is_unreachable:
        councils[0].unreachable.add(2)
    everyone = tuple(range(SIZE))
    assert assemble(councils[:2] if is_unreachable else councils) == (
        {0: (0, 1), 1: (0, 1)} if is_unreachable else dict.fromkeys(everyone, everyone)
    )
    assert ports_of()[:2] == [is_unreachable] * 2


def test_a_chair_that_was_left_out_makes_no_roll(councils, ports_of):
    _, left_out, ahead = councils
    left_out.gone.add(0)
    ahead.gone.add(0)
    ahead.call = 1
    results = assemble([left_out, ahead])
    assert "the others may go on without it" in results[1]
    assert "are not more than half" in results[2]
    assert ports_of()[1:] == [True, True]


def test_a_member_that_was_left_out_takes_no_roll_without_itself(councils, ports_of):
    chair, left_out, _ = councils
    chair.gone.add(2)
    chair.call = 1
    chair.own = Answer(1, bytes([GOES_ON]) + messages.ROLL_ENTRY.pack(0), 0)
    results = assemble([chair, left_out])
    assert "the others may go on without it" in results[1]
    assert "did not call shrink" in results[0]
    assert ports_of()[1]
