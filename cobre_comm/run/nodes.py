"""A job on several machines: each machine has a launcher, with the number ``--node-rank``."""

from __future__ import annotations

import argparse
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import replace

from cobre_comm.backends.spec import Rendezvous
from cobre_comm.config import BackendKind
from cobre_comm.processes.job import Job, check_size

DEFAULT_PORT = 29500
_ANYWHERE = {4: "0.0.0.0", 6: "::"}
_COORDINATOR = re.compile(r"(?:\[(?P<ipv6>[^]]+)]|(?P<name>[^][\s/:]+))(?::(?P<port>[0-9]{1,5}))?")


def job_on_nodes(chosen: argparse.Namespace, environ: Mapping[str, str]) -> Job:
    """Return the job of all nodes, as the options describe it to the launcher of this node.

    On a single node the ranks meet like those of any other job on one machine, and need no secret
    from outside. ``ValueError`` or ``InvalidBackend`` says which options to change.
    """
    backend = BackendKind.parse(chosen.backend)
    if backend is BackendKind.MPI:
        raise ValueError(
            "--nnodes is for backend tcp; MPI's own mpiexec (or srun) starts ranks on several "
            "machines: COBRE_COMM_BACKEND=mpi mpiexec -n 16 -host a:8,b:8 python script.py"
        )
    nodes, node = chosen.nnodes, _node(chosen)
    check_size(nodes * chosen.size)
    if backend not in (BackendKind.AUTO, BackendKind.TCP):
        raise ValueError(
            f"--nnodes needs backend tcp, not {chosen.backend!r}; leave out --backend, and "
            "COBRE_COMM_BACKEND"
        )
    job = Job(nodes * chosen.size, "tcp", chosen.timeout, nodes=nodes, node=node)
    rendezvous = _rendezvous(chosen, environ)
    if rendezvous is None or nodes == 1:
        return job
    if chosen.max_restarts:
        raise ValueError(
            "--max-restarts is for a job of one machine; Slurm (sbatch --requeue), Kubernetes (the "
            "backoffLimit of a Job) and torchrun (--max-restarts) start a job of several machines "
            "again"
        )
    return replace(job, token=_token_of(environ), rendezvous=rendezvous)


def _node(chosen: argparse.Namespace) -> int:
    """Return the number of this node."""
    nodes, node = chosen.nnodes, chosen.node_rank
    if nodes < 1:
        raise ValueError(f"--nnodes must be 1 or more, got {nodes}")
    if node is None and nodes > 1:
        raise ValueError(
            f"--nnodes {nodes} needs --node-rank: 0 on one machine, 1 on the next, ..."
        )
    if not 0 <= (node or 0) < nodes:
        raise ValueError(f"--node-rank must be between 0 and {nodes - 1}, got {node}")
    return node or 0


def _rendezvous(chosen: argparse.Namespace, environ: Mapping[str, str]) -> Rendezvous | None:
    """Return the address of rank 0; None if there is one node and no ``--coordinator``."""
    if chosen.coordinator is not None:
        host, port = parse_coordinator(chosen.coordinator)
        return Rendezvous(host, port, environ.get("COBRE_TCP_BIND_ADDR") or _bind_address(host))
    if chosen.nnodes > 1:
        raise ValueError(
            f"--nnodes {chosen.nnodes} needs --coordinator HOST[:PORT]: "
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
    """Return the address at which rank 0 listens: any address, unless its host is loopback."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:  # the host is a name
        return _ANYWHERE[4]
    return host if address.is_loopback else _ANYWHERE[address.version]


def _token_of(environ: Mapping[str, str]) -> str:
    token = environ.get("COBRE_TCP_TOKEN")
    if not token:
        raise ValueError(
            "a job on several machines needs a secret that all its launchers know; make it once, "
            "by `export COBRE_TCP_TOKEN=$(openssl rand -hex 32)`, and set the same on each machine"
        )
    return token
