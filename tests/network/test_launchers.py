"""One launcher on each host; together they make one job, and together they end."""

import contextlib
import pathlib
import re
import secrets

import pytest

from tests.launch.command import EXAMPLES, Running, cobre
from tests.launch.command import PROGRAMS as LAUNCH_PROGRAMS

pytestmark = pytest.mark.slow  # each makes processes and waits; `make test` has the suite's own

RANKS = 2  # on each host
HELLO, LOOP = EXAMPLES / "hello_ranks.py", EXAMPLES / "njit_loop.py"
MEET = LAUNCH_PROGRAMS / "meet.py"
BARRIERS = pathlib.Path(__file__).parent / "programs" / "barriers.py"


@pytest.fixture
def start():
    """Start a launcher on each of some hosts, the first one last; all end with the test."""
    with contextlib.ExitStack() as stack:

        def start(hosts, coordinator, *words, options=()):
            told = {"COBRE_TCP_TOKEN": secrets.token_hex(32)}
            place = "--nnodes", len(hosts), "--coordinator", coordinator, *options
            jobs = []
            for node, host in reversed(list(enumerate(hosts))):
                command = "run", "-n", RANKS, *place, "--node-rank", node, *words
                with host.inside():
                    jobs.append(stack.enter_context(Running(*command, extra=told)))
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


def test_same_digits_as_on_one_machine(hosts, start):
    jobs = start(hosts[:2], hosts[0].address, LOOP, options=["--no-prefix"])
    ends = [job.finish() for job in jobs]
    assert [code for code, _, _ in ends] == [0, 0], ends
    alone = cobre("run", "-n", 2 * RANKS, "--backend", "shm", "--no-prefix", LOOP)
    assert alone.stdout
    assert ends[0][1] == alone.stdout


@pytest.mark.parametrize("killed", [0, 5])
def test_killed_rank_ends_the_job_on_all_hosts(hosts, start, killed):
    ends = [job.finish() for job in start(hosts, hosts[0].address, MEET, "kill", killed)]
    for node, (code, _, errors) in enumerate(ends):
        if node == killed // RANKS:
            assert code == 137, errors
            assert f"cobre-comm: rank {killed} was ended by signal 9" in errors
        else:
            assert code == 1, errors
            assert re.search(rf"CollectiveFailed: .*rank {killed} died", errors), errors


def test_cut_cable_ends_the_job_on_both_sides(hosts, start):
    jobs = start(hosts, hosts[0].address, BARRIERS, options=["--timeout", 2])
    for job in jobs:
        job.wait_ready(RANKS)
    hosts[2].unplug()
    named = []
    for job in jobs:
        code, _, errors = job.finish()
        assert code == 1, errors
        assert "COBRE_TCP_TIMEOUT_SECS" in errors
        named.append(set(re.findall(r"rank (\d)", " ".join(re.findall("Failed: .*", errors)))))
    assert named == [{"4", "5"}, {"4", "5"}, {"0", "1", "2", "3"}]
    assert all(job.survivors() == [] for job in jobs)
