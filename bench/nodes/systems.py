"""Start the ranks of each compared system on hosts: ours, an earlier version, Open MPI."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.peers import environment_of
from bench.plan import OPEN_MPI_OVER_TCP
from cobre_comm.processes.mpi.mpiexec import find_mpiexec
from cobre_comm.testing.ranks.surroundings import inherited_environment
from tests.network.hosts import Host, Network

PROGRAM = Path(__file__).with_name("rank.py")
TCP, MPI, PEER = "tcp", "mpi", "peer"
DEADLINE_S = 600
CABLE = "eth0"
# Shared memory within a node, sockets between nodes. prterun is at the switch; it starts its
# daemon on each host by a script in place of ssh.
OPEN_MPI = {
    **OPEN_MPI_OVER_TCP,
    "OMPI_MCA_btl": "sm,tcp,self",
    "OMPI_MCA_btl_tcp_if_include": CABLE,
    "PRTE_MCA_plm": "ssh",
    "PRTE_MCA_prte_keep_fqdn_hostnames": "1",
}

# Open MPI's folders are named after process numbers, which nodes have in common.
AGENT = ["#!/bin/sh", "host=$1; shift", 'export TMPDIR="$0.$host"; mkdir "$TMPDIR"']


class JobFailed(RuntimeError):
    """Ranks have failed; the message has the end of their output."""


def run(
    system: str, python: Path, network: Network, ranks: int, rows: Sequence[dict], folder: Path
) -> list[dict]:
    """Measure rows on the hosts of a network; return the results of each rank.

    Parameters
    ----------
    system : str
        ``tcp`` or ``mpi``, a backend of ours, or ``peer``, Open MPI alone.
    python : Path
        The interpreter whose cobre_comm is measured.
    network : Network
        The hosts.
    ranks : int
        Number of ranks on each host.
    rows : sequence of dict
        As ``rank.py`` takes them.
    folder : Path
        An empty one.

    Raises
    ------
    JobFailed
        If a rank fails, or a deadline passes.
    """
    spec = folder / "rows.json"
    spec.write_text(json.dumps(rows))
    program = [str(python), str(PROGRAM), system, str(spec), str(folder)]
    size = ranks * len(network.hosts)
    with ExitStack() as stack, (folder / "output").open("w") as output:
        if system == TCP:
            jobs = [
                stack.enter_context(job)
                for job in _launchers(network.hosts, ranks, program, output)
            ]
        else:
            jobs = [stack.enter_context(_prterun(system, network, ranks, program, output))]
        codes = [job.wait(timeout=DEADLINE_S) for job in jobs]
    if any(codes):
        raise JobFailed(f"{system}: exit codes {codes}: {(folder / 'output').read_text()[-3000:]}")
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(size)]


def _crowded(size: int) -> bool:
    """Whether ranks outnumber the cores of this machine, which all hosts share."""
    return size > (os.cpu_count() or 1)


def _launchers(hosts: Sequence[Host], ranks: int, program: list[str], output) -> Iterator:
    """Start a launcher of ours on each host."""
    python, *words = program
    tuned = {name: value for name, value in os.environ.items() if name.startswith("COBRE_TCP_")}
    environment = {**inherited_environment(), **tuned, "COBRE_TCP_TOKEN": secrets.token_hex(32)}
    if _crowded(ranks * len(hosts)):
        environment["COBRE_COMM_SPIN_US"] = "0"
    for number, host in enumerate(hosts):
        options = ["-n", ranks, "--nnodes", len(hosts), "--node-rank", number]
        options += ["--coordinator", hosts[0].address, "--backend", TCP]
        command = [python, "-m", "cobre_comm", "run", *map(str, options), *words]
        yield _started(command, host.inside(), environment, output)


def _prterun(system: str, network: Network, ranks: int, program: list[str], output):
    """Start Open MPI's launcher at the switch."""
    hosts, size = network.hosts, ranks * len(network.hosts)
    folder = Path(output.name).parent
    agent = folder / "agent"
    cases = [f'{h.address}) exec {shlex.join(h.room.command)} sh -c "$*";;' for h in hosts]
    agent.write_text("\n".join([*AGENT, 'case "$host" in', *cases, "esac"]))
    agent.chmod(0o700)
    chosen = {**inherited_environment(), **environment_of("openmpi", _crowded(size)), **OPEN_MPI}
    chosen |= {"MPI4PY_MPIABI": "openmpi", "PRTE_MCA_plm_ssh_agent": str(agent)}
    chosen["TMPDIR"] = str(folder)
    if system == MPI:
        chosen["COBRE_COMM_BACKEND"] = MPI
        chosen |= {"COBRE_COMM_SPIN_US": "0"} if _crowded(size) else {}
    mpiexec = find_mpiexec(chosen)
    places = ",".join(f"{host.address}:{ranks}" for host in hosts)
    command = [*mpiexec.command, "-n", str(size), "--host", places, "--bind-to", "none"]
    exported = [word for name in sorted(chosen) if name.startswith(("OMPI_", "COBRE_", "MPI4PY_"))
                for word in ("-x", name)]  # fmt: skip
    return _started(
        [*command, *exported, *program], network.at_switch(), mpiexec.environment, output
    )


@contextmanager
def _started(command: Sequence[str], where, environment: dict[str, str], output) -> Iterator:
    """Start a process somewhere, in the folder of its output; end it if it has not ended."""
    with where:
        process = subprocess.Popen(
            command, cwd=Path(output.name).parent, env=environment, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=DEADLINE_S)


def interpreter() -> Path:
    """Return this interpreter."""
    return Path(sys.executable)
