"""The assembly: launchers of a job on several machines open their links, before its ranks meet.

The launcher of machine 0 listens at the port of ``--coordinator``; each of the others connects to
it, and both prove that they know the token of the job. Then machine 0 stops listening, because
rank 0 needs that port. Ranks of each attempt have a token of their own, so that no rank meets those
of another attempt, and no launcher that is started late meets a rank.
"""

from __future__ import annotations

import contextlib
import hmac
import socket
from collections.abc import Callable, Collection

from cobre_comm.backends.spec import Rendezvous
from cobre_comm.backends.tcp.rendezvous.acceptor import Acceptor
from cobre_comm.backends.tcp.rendezvous.addresses import Address, resolve
from cobre_comm.backends.tcp.rendezvous.connector import Attempts, open_link
from cobre_comm.backends.tcp.rendezvous.event_loop import TaskLoop
from cobre_comm.backends.tcp.rendezvous.handshake import Handshake, introduce
from cobre_comm.backends.tcp.rendezvous.sockets import close_all, listen_for_workers
from cobre_comm.config import TcpConfig
from cobre_comm.errors import InitializationFailed
from cobre_comm.processes.job import Job
from cobre_comm.reports.launcher import ON_MACHINES
from cobre_comm.run.launcher_link import Link
from cobre_comm.system.running_time import running_s

LAUNCHERS = 0x40  # the purpose of a link between launchers


def token_of(job: Job, restart: int) -> str:
    """Return the token of the ranks of one attempt."""
    return hmac.new(job.token.encode(), f"attempt {restart}".encode(), "sha256").hexdigest()


def await_launchers(
    job: Job, links: dict[int, Link], missing: Collection[int], done: Callable[[float], bool]
) -> None:
    """Add a link to each launcher that arrives, at machine 0, where these machines are missing.

    ``done`` is called often, with the seconds that the assembly has lasted; it returns whether the
    assembly is over.
    """

    def admit(peer: Handshake, sock: socket.socket, address: Address) -> None:
        links[peer.rank] = Link(sock)

    meet = _rendezvous(job)
    key, began = job.token.encode(), running_s()
    listeners = listen_for_workers(meet.bind_addr, meet.port)
    with contextlib.closing(TaskLoop()) as loop:
        expected = {(machine, LAUNCHERS) for machine in missing}
        config = TcpConfig(rank=0, size=job.size, port=meet.port, token=job.token)
        acceptor = Acceptor(
            loop, config, lambda _: key, admit, expected, len(expected),
            what="machine", cure=ON_MACHINES.__getitem__,
        )  # fmt: skip
        try:
            acceptor.serve(listeners)
            loop.run(lambda: done(running_s() - began), float("inf"))
        finally:
            acceptor.close()
            close_all(listeners)


def join(job: Job, done: Callable[[float], bool]) -> Link | str:
    """Return the link to the launcher of machine 0; or why there is none, once ``done`` says so.

    This machine has another number. ``done`` is as for :func:`await_launchers`.
    """
    meet, found = _rendezvous(job), list[Link]()
    attempts, began = Attempts(0), running_s()
    own = introduce(job.node, job.size, LAUNCHERS, target=0)
    with contextlib.closing(TaskLoop()) as loop:
        try:
            loop.start(
                open_link(
                    attempts,
                    lambda: resolve(meet.host, meet.port),
                    lambda sock, only_here: own,
                    job.token.encode(),
                    lambda sock, process: found.append(Link(sock)),
                )
            )
            loop.run(lambda: bool(found) or done(running_s() - began), float("inf"))
        except InitializationFailed as error:
            return str(error.source)
    return found[0] if found else f"{meet.host} port {meet.port}: {attempts}"


def _rendezvous(job: Job) -> Rendezvous:
    assert job.rendezvous is not None
    return job.rendezvous
