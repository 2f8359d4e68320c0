"""Ranks and the pages of shared memory, on a machine that has several NUMA nodes.

If this machine has one NUMA node, `make place-numa` runs these tests on virtual machines.
"""

import json

import pytest

from cobre_comm.system.cpus import SYSFS, parse_cpus
from cobre_comm.testing.ranks.surroundings import scaled_limit
from tests.launch.command import PROGRAMS, cobre, lines_of

LIMIT_S = 200


def read_numbers(path):
    """Return the numbers that a file of sysfs lists; none if the file does not exist."""
    return parse_cpus(path.read_text()) if path.exists() else []


NODES = {
    number: read_numbers(SYSFS / f"node/node{number}/cpulist")
    for number in read_numbers(SYSFS / "node/has_cpu")
}
MEMORY = read_numbers(SYSFS / "node/has_memory")
# The cores of each NUMA node. One rank on each NUMA node, of THREADS threads, fills the machine.
CORES = {
    number: {
        tuple(read_numbers(SYSFS / f"cpu/cpu{cpu}/topology/thread_siblings_list")) for cpu in cpus
    }
    for number, cpus in NODES.items()
}
THREADS = min(map(len, CORES.values()), default=1)

pytestmark = [
    pytest.mark.skipif(
        len(NODES) < 2, reason="this machine has one NUMA node; make place-numa starts another one"
    ),
    pytest.mark.timeout(scaled_limit(LIMIT_S)),
]


def socket_of(cpu):
    return int((SYSFS / f"cpu/cpu{cpu}/topology/physical_package_id").read_text())


def placed(bind, ranks, threads, program, *words, **extra):
    """Run ranks that are bound; return what each of them prints."""
    command = "run", "-n", ranks, "--threads", threads, "--bind", bind
    done = cobre(*command, program, *words, within_s=scaled_limit(LIMIT_S), **extra)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for rank in range(ranks) for line in lines_of(done.stdout, rank)]


@pytest.mark.parametrize("bind", ["core", "cores", "numa", "socket"])
def test_ranks_are_bound(bind):
    ranks = len(NODES)
    said = placed(bind, ranks, THREADS, PROGRAMS / "act.py", "affinity")
    found = [json.loads(line.removeprefix("cores ")) for line in said]
    if bind == "core":
        every = [core for cores in CORES.values() for core in sorted(cores)]
        expected = [list(core) for core in every[:ranks]]
    elif bind == "cores":
        expected = [
            sorted(cpu for core in sorted(cores)[:THREADS] for cpu in core)
            for cores in CORES.values()
        ]
    elif bind == "numa":
        expected = list(NODES.values())
    else:
        expected = [
            sorted(
                cpu
                for other in NODES.values()
                for cpu in other
                if socket_of(cpu) == socket_of(cpus[0])
            )
            for cpus in NODES.values()
        ]
    assert found == expected


@pytest.mark.parametrize("interleave", [False, True], ids=["taken", "interleaved"])
@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_pages_are_with_their_ranks(backend, interleave):
    ranks = len(NODES)
    settings = {f"COBRE_{name}_TIMEOUT_SECS": str(scaled_limit(60)) for name in ("SHM", "TCP")}
    settings |= {
        "COBRE_TCP_CONNECT_TIMEOUT_MS": str(int(scaled_limit(60_000))),
        "COBRE_COMM_BACKEND": backend,
        "COBRE_SHM_NUMA_INTERLEAVE": str(int(interleave)),
    }
    said = placed("numa", ranks, THREADS, PROGRAMS / "pages.py", **settings)
    every = [json.loads(line) for line in said]
    for told, node in zip(every, NODES, strict=True):
        assert told["cpus"] == NODES[node]
        assert told["topology"] == [NODES[node], [node]]
    spread = [sorted(map(str, MEMORY))] * ranks
    with_owner = spread if interleave else [[str(node)] for node in NODES]
    with_leader = spread if interleave else [[str(min(NODES))]] * ranks
    for told in every:  # all ranks see the same placement of the pages
        assert list(map(sorted, told["slots"])) == with_owner
        assert list(map(sorted, told["owner"])) == with_owner
        assert list(map(sorted, told["leader"])) == with_leader
        assert list(map(sorted, told["interleave"])) == spread
        assert set(told["control"]) == ({*spread[0]} if interleave else {str(min(NODES))})
        counts = [count for share in told["interleave"] for count in share.values()]
        assert max(counts) - min(counts) <= 1, "pages alternate over NUMA nodes"
