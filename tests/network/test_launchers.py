"""One launcher on each host: all launchers together make one job, and they end together."""

import contextlib
import re
import secrets

import pytest

from cobre_comm.testing import BackendName
from tests.grid import skip_unless_here
from tests.launch.command import EXAMPLES, PROGRAMS, Running
from tests.network.hosts import MPI_ON_CABLE, inside

pytestmark = pytest.mark.slow  # each test makes processes; `make test` has the suite's cases

RANKS = 2  # the number of ranks on each host
HELLO, WAIT = EXAMPLES / "hello_ranks.py", PROGRAMS / "wait.py"


@pytest.fixture
def start():
    """Return a function that starts a launcher on each host; that of the first host starts last.

    All launchers end with the test.
    """
    with contextlib.ExitStack() as stack:

        def start(hosts, coordinator, *words, options=()):
            told = {"COBRE_TCP_TOKEN": secrets.token_hex(32)}
            place = "--nnodes", len(hosts), "--coordinator", coordinator, *options
            jobs = []
            for node, host in reversed(list(enumerate(hosts))):
                command = "run", "-n", RANKS, *place, "--node-rank", node, *words
                with host.inside():
                    jobs.append(stack.enter_context(Running(*command, extra=told, elsewhere=True)))
            return jobs[::-1]

        yield start


@pytest.mark.parametrize("way", ["address", "port", "ipv6"])
def test_one_job(hosts, start, way):
    coordinator = {
        "address": hosts[0].address,
        "port": f"{hosts[0].address}:4000",
        "ipv6": f"[{hosts[0].address6}]:4000",
    }[way]
    ends = [job.finish() for job in start(hosts, coordinator, HELLO)]
    size = RANKS * len(hosts)
    assert [(code, errors) for code, _, errors in ends] == [(0, "")] * len(hosts)
    for node, (_, output, _) in enumerate(ends):
        for rank in range(RANKS * node, RANKS * (node + 1)):
            assert f"[{rank}] hello from rank {rank} of {size} on tcp" in output.splitlines()
    assert f"numbers add up to {size * (size - 1) // 2}" in ends[0][1]


def test_cut_cable_ends_the_job_on_both_sides(hosts, start):
    jobs = start(hosts, hosts[0].address, WAIT, "meet", options=["--timeout", 2])
    for job in jobs:
        job.wait_ready(RANKS)
    hosts[2].unplug()
    named = []
    for job in jobs:
        code, _, errors = job.finish()
        assert code == 1, errors
        assert "raise --timeout" in errors
        failures = " ".join(re.findall("Failed: .*", errors))
        missing = re.findall(r"ranks? (\d(?:(?:, | and )\d)*)", failures)  # "4", or "0 and 2"
        named.append(set(re.findall(r"\d", " ".join(missing))))
    ahead, behind = set("0123"), set("45")
    for ranks, others in zip(named, (behind, behind, ahead), strict=True):
        assert ranks <= others  # not always all: a rank may have arrived just before the cut
        assert ranks
    assert all(job.survivors() == [] for job in jobs)


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_cut_cable_ends_a_job_of_mpi(hosts, library):
    """``mpiexec`` cannot reach the ranks beyond the cut, and must end them all the same."""
    backend, names = skip_unless_here(f"mpi-{library}-net:0,1"), [host.name for host in hosts[:2]]
    words = "run", "-n", 4, "--backend", "mpi", "--timeout", 2, "-m", "tests.network.moved"
    told = BackendName.parse(backend).environment() | MPI_ON_CABLE
    with inside(names[0]):
        job = Running(*words, *names, *names, extra=told)
    with job:
        job.wait_ready(4)
        hosts[1].unplug()
        code, _, errors = job.finish()
        assert code == 1, errors
        assert "--timeout" in errors
        assert job.survivors() == []
