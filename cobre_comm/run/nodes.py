"""A job on several machines: each has a launcher, which is told which of them it is on."""

from __future__ import annotations

import ipaddress
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace

from cobre_comm.backends.spec import Rendezvous
from cobre_comm.config import BackendKind
from cobre_comm.processes.job import Job, check_size

DEFAULT_PORT = 29500
LONGEST_TOKEN_BYTES = 4096
MAKE_A_TOKEN = "`(umask 077; openssl rand -hex 32 > job.token)`"
_ANYWHERE = {4: "0.0.0.0", 6: "::"}
_COORDINATOR = re.compile(r"(?:\[(?P<ipv6>[^]]+)]|(?P<name>[^][\s/:]+))(?::(?P<port>[0-9]{1,5}))?")
_TOKEN = re.compile(rb"\s*([!-~]+)\s*")


@dataclass(frozen=True)
class NodeOptions:
    """The nodes of a job as the command line gives them; None where it gives nothing.

    Parameters
    ----------
    nodes : int
        How many machines there are, each with a launcher.
    node : int or None
        Which of them this is.
    coordinator : str or None
        Where node 0 is: ``HOST``, ``HOST:PORT``, ``IPv6`` or ``[IPv6]:PORT``.
    token_file : str or None
        A file that holds the secret of the job.
    """

    nodes: int
    node: int | None
    coordinator: str | None
    token_file: str | None


def job_on_nodes(
    options: NodeOptions,
    ranks_per_node: int,
    backend: str,
    timeout_s: float | None,
    environ: Mapping[str, str],
) -> Job:
    """Return the job of all nodes, as the launcher of this one sees it.

    On a single node the ranks meet like those of any other job of one machine, and need no secret
    from outside.

    Raises
    ------
    ValueError, InvalidBackend
        For what cannot work; says what to do about it.
    """
    if BackendKind.parse(backend) is BackendKind.MPI:
        raise ValueError(
            "--nnodes is for backend tcp; MPI's own mpiexec (or srun) starts ranks on several "
            "machines: COBRE_COMM_BACKEND=mpi mpiexec -n 16 -host a:8,b:8 python script.py"
        )
    node = _node(options)
    check_size(ranks_per_node)
    check_size(options.nodes * ranks_per_node)
    if BackendKind.parse(backend) not in (BackendKind.AUTO, BackendKind.TCP):
        raise ValueError(f"--nnodes needs backend tcp, not {backend!r}; leave --backend out")
    job = Job(options.nodes * ranks_per_node, "tcp", timeout_s, nodes=options.nodes, node=node)
    rendezvous = _rendezvous(options, environ)
    token = _read_token(options.token_file) if options.token_file is not None else ""
    if rendezvous is None or options.nodes == 1:
        return job
    return replace(job, token=token or _token_of(environ), rendezvous=rendezvous)


def _node(options: NodeOptions) -> int:
    """Return which node this is."""
    if options.nodes < 1:
        raise ValueError(f"--nnodes must be 1 or more, got {options.nodes}")
    if options.node is None and options.nodes > 1:
        raise ValueError(
            f"--nnodes {options.nodes} needs --node-rank: 0 on one machine, 1 on the next, ..."
        )
    node = options.node or 0
    if not 0 <= node < options.nodes:
        raise ValueError(f"--node-rank must be between 0 and {options.nodes - 1}, got {node}")
    return node


def _rendezvous(options: NodeOptions, environ: Mapping[str, str]) -> Rendezvous | None:
    """Return where rank 0 is found; None if that does not matter."""
    if options.coordinator is not None:
        host, port = parse_coordinator(options.coordinator)
        return Rendezvous(host, port, environ.get("COBRE_TCP_BIND_ADDR") or _bind_address(host))
    if options.nodes > 1:
        raise ValueError(
            f"--nnodes {options.nodes} needs --coordinator HOST[:PORT]: "
            "the machine of --node-rank 0, as the others reach it"
        )
    return None


def parse_coordinator(text: str) -> tuple[str, int]:
    """Return host and port of ``HOST``, ``HOST:PORT``, ``IPv6`` or ``[IPv6]:PORT``."""
    if _is_ipv6(text):
        return text, DEFAULT_PORT
    found = _COORDINATOR.fullmatch(text)
    if found and (found["ipv6"] is None or _is_ipv6(found["ipv6"])):
        port = int(found["port"] or DEFAULT_PORT)
        if 0 < port < 2**16:
            return found["ipv6"] or found["name"], port
    raise ValueError(f"--coordinator takes HOST, HOST:PORT or [IPv6]:PORT, got {text!r}")


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _bind_address(host: str) -> str:
    """Return where rank 0 listens: everywhere, unless it is to be found on loopback."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:  # a name
        return _ANYWHERE[4]
    return host if address.is_loopback else _ANYWHERE[address.version]


def _read_token(name: str) -> str:
    """Return what a file holds that only its owner can read."""
    try:
        with open(name, "rb") as file:  # noqa: PTH123  # /dev/fd/63 is no path to resolve
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(LONGEST_TOKEN_BYTES + 1)
    except OSError as error:
        raise ValueError(f"cannot read --token-file {name!r}: {error.strerror}") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ValueError(
            f"others can read --token-file {name!r} (mode {stat.S_IMODE(mode):o}); "
            f"protect it: chmod 600 {name}"
        )
    token = _TOKEN.fullmatch(content)
    if token is None or len(content) > LONGEST_TOKEN_BYTES:
        raise ValueError(
            f"--token-file {name!r} must hold one word and nothing else; make it: {MAKE_A_TOKEN}"
        )
    return token[1].decode()


def _token_of(environ: Mapping[str, str]) -> str:
    token = environ.get("COBRE_TCP_TOKEN")
    if not token:
        raise ValueError(
            "a job on several machines needs a secret that all its launchers know; make it once: "
            f"{MAKE_A_TOKEN}, then pass --token-file job.token to each (or set COBRE_TCP_TOKEN)"
        )
    return token
